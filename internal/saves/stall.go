package saves

import (
	"slices"
	"time"
)

// Step is when a rank was first seen to have made Count steps.
type Step struct {
	Time  time.Time
	Count int64
}

// leastUsual is the smallest number of pieces of the training in which no checkpoint was written that must be
// known.
const leastUsual = 3

// Stall returns by how much the steps of a rank took longer than usual while a checkpoint was written, from
// begun to ended. steps has the steps of the rank in the order of time. ok is false if the stall is not known
// yet: Stall needs a step before begun, a step after ended, and enough steps at other times.
func Stall(steps []Step, begun, ended time.Time) (stall time.Duration, ok bool) {
	if len(steps) == 0 || steps[0].Time.After(begun) || steps[len(steps)-1].Time.Before(ended) {
		return 0, false
	}
	type piece struct {
		took  time.Duration
		steps int64
	}
	var during []piece
	var usual []time.Duration // durations of one step
	for i := 1; i < len(steps); i++ {
		a, b := steps[i-1], steps[i]
		if b.Count <= a.Count { // the count has started again
			continue
		}
		took := b.Time.Sub(a.Time)
		if b.Time.After(begun) && a.Time.Before(ended) {
			during = append(during, piece{took, b.Count - a.Count})
		} else {
			usual = append(usual, took/time.Duration(b.Count-a.Count))
		}
	}
	if len(usual) < leastUsual || len(during) == 0 {
		return 0, false
	}
	one := median(usual)
	var off []time.Duration
	for _, u := range usual {
		off = append(off, (u - one).Abs())
	}
	noise := 3 * median(off)
	for _, p := range during {
		if over := p.took - time.Duration(p.steps)*one; over > noise*time.Duration(p.steps) {
			stall += over
		}
	}
	return stall, true
}

// Middle returns the median of the stalls of several ranks. stalls must not be empty.
func Middle(stalls []time.Duration) time.Duration { return median(slices.Clone(stalls)) }
