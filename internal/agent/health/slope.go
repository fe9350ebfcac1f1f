package health

import (
	"slices"
	"time"
)

// point is a value at a moment.
type point struct {
	at    time.Time
	value int64
}

// series has the latest points, the oldest first.
type series []point

// maxPoints limits the length of a series. With a sample every 5 s, a series is 5 minutes long.
const maxPoints = 60

// add appends a point, and removes the oldest if there are more than maxPoints.
func (s *series) add(p point) {
	if len(*s) == maxPoints {
		*s = slices.Delete(*s, 0, 1)
	}
	*s = append(*s, p)
}

// last returns the last n points, or all if there are fewer.
func (s series) last(n int) series { return s[max(0, len(s)-n):] }

// trend returns the median of the slopes between all pairs of points (Theil-Sen), per second, and the share
// of the pairs whose value rises. A single jump changes both only a little.
func (s series) trend() (perSecond, rising float64) {
	var slopes []float64
	for i, a := range s {
		for _, b := range s[i+1:] {
			if seconds := b.at.Sub(a.at).Seconds(); seconds > 0 {
				slope := float64(b.value-a.value) / seconds
				slopes = append(slopes, slope)
				if slope > 0 {
					rising++
				}
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2], rising / float64(len(slopes))
}

const (
	fewPoints  = 6                // the number of points by which a fast rise is judged
	manyPoints = 24               // the number of points that a slow rise needs, unless nearlyAll pairs rise
	fastLimit  = time.Minute      // a fast rise counts if less time is left
	slowLimit  = 15 * time.Minute // a slow rise counts if less time is left
	fewShare   = 0.9              // the share of the pairs of points that must rise in a fast rise
	nearlyAll  = 0.95
	slowShare  = 0.8
	loud       = 8 // a fast rise must be larger than this many times the usual change between two points
)

// growth predicts when a value that grows reaches a limit.
type growth struct {
	all    series // at most one point in each Period
	recent series // the latest points
}

// add adds the value at a moment.
func (g *growth) add(p point) {
	g.recent.add(p)
	if n := len(g.all); n == 0 || p.at.Sub(g.all[n-1].at) >= Period-closePeriod/2 {
		g.all.add(p)
	}
}

// slowly returns the time until the value has grown by room at the rate of the last minutes. ok is false if
// that time is longer than limit, or if the value does not rise steadily.
func (g *growth) slowly(room int64, limit time.Duration) (left time.Duration, ok bool) {
	share := slowShare
	if len(g.all) < manyPoints {
		limit, share = min(limit, fastLimit), nearlyAll
	}
	if len(g.all) < fewPoints || g.all[len(g.all)-1].value <= g.all[0].value {
		return 0, false
	}
	rate, rising := g.all.trend()
	return timeFor(room, rate, limit, rising >= share)
}

// fast returns the time until the value has grown by room at the rate of the latest points. ok is false if
// that time is long, or if the latest points do not rise by far more than the value usually changes.
func (g *growth) fast(room int64) (left time.Duration, ok bool) {
	few := g.recent.last(fewPoints)
	if len(few) < fewPoints {
		return 0, false
	}
	rise := few[len(few)-1].value - few[0].value
	var changes []int64 // the changes before the latest points
	for i := 1; i < len(g.all) && !g.all[i].at.After(few[0].at); i++ {
		change := g.all[i].value - g.all[i-1].value
		changes = append(changes, max(change, -change))
	}
	if len(changes) < fewPoints || rise <= loud*median(changes) {
		return 0, false
	}
	rate, rising := few.trend()
	return timeFor(room, rate, fastLimit, rising >= fewShare)
}

// timeFor returns the time in which a value grows by room at a rate per second. ok is false if that time is
// longer than limit, or if steady is false.
func timeFor(room int64, rate float64, limit time.Duration, steady bool) (time.Duration, bool) {
	if !steady || rate <= 0 {
		return 0, false
	}
	seconds := float64(max(0, room)) / rate
	return time.Duration(seconds * float64(time.Second)), seconds <= limit.Seconds()
}

// left returns the time until the value has grown by room. ok is false if that is not soon.
func (g *growth) left(room int64) (time.Duration, bool) {
	if left, ok := g.fast(room); ok {
		return left, true
	}
	return g.slowly(room, slowLimit)
}

// median returns the median of a list that is not empty.
func median(list []int64) int64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
