package htmlreport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// These are sizes in the pictures, in pixels. Positions that stand for a time or a step are in percent of the
// width. So a picture fits a screen of any width, and its text keeps its size.
const (
	barHeight  = 22
	laneHeight = 36
	axisHeight = 24
)

// timeline is the picture of a run over time.
type timeline struct {
	Title    string
	Phases   []bar
	Attempts []bar
	Lanes    []row
	Ticks    []tick
	Legend   []string // names of the phases in the picture
	Axis     int      // position of the axis, from the top
	Height   int
}

// TickY returns the position of the labels of the axis of time, and XTicks returns the labels.
func (t timeline) TickY() int     { return t.Axis + 16 }
func (t timeline) XTicks() []tick { return t.Ticks }

// bar is a period in the picture.
type bar struct {
	Class, Label, Title string
	X, W                float64 // in percent
}

// Anchor returns the position of the bar's label, if there is room for it.
func (b bar) Anchor() float64 { return b.X + b.W/2 }

// row is a lane with its marks.
type row struct {
	Lane  Lane
	Name  string
	Y     int // position of the marks, from the top
	Marks []dot
}

// NameY returns the position of the name of the row.
func (r row) NameY() int { return r.Y - 12 }

// Number returns the number of the lane, which determines its colour.
func (r row) Number() int { return int(r.Lane) }

// Glyph returns the shape of the marks, around the origin. Each lane has its own shape, for people who cannot
// distinguish the colours.
func (r row) Glyph() string { return glyphs[r.Lane] }

var glyphs = [lanes]string{
	LaneCheckpoint: "M0 -6L6 0L0 6L-6 0Z",                                         // diamond
	LaneHealth:     "M0 -6L6 5L-6 5Z",                                             // triangle
	LaneStraggler:  "M-5 -5H5V5H-5Z",                                              // square
	LaneHang:       "M-2.5 -6H2.5L6 -2.5V2.5L2.5 6H-2.5L-6 2.5V-2.5Z",             // octagon
	LaneCurve:      "M0 -5A5 5 0 1 1 0 5A5 5 0 1 1 0 -5Z",                         // circle
	LaneExit:       "M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z", // cross
	LaneOrder:      "M0 6L6 -5L-6 -5Z",                                            // triangle upside down
	LaneVerdict:    "M-4 -6H-2V-5H6L3 -2L6 1H-2V6H-4Z",                            // flag
}

// dot is a mark in a picture.
type dot struct {
	X     float64 // in percent
	Title string
}

// tick is a label of an axis.
type tick struct {
	At     float64 // in percent of the width, or in pixels from the top
	Label  string
	Anchor string // alignment of the text: start, middle or end
}

// mostBars is the maximum number of phases and attempts that are drawn. In a longer run, these are the last
// ones.
const mostBars = 200

// timeline draws the run up to its end. If the run has not ended, it draws the run up to now.
func (r *Recorder) timeline(report runreport.Report, now time.Time) *timeline {
	if report.Started == nil {
		return nil
	}
	from, to := *report.Started, r.latest
	if report.Ended != nil {
		to = *report.Ended
	} else if !report.State.Final() && now.After(to) {
		to = now
	}
	whole := to.Sub(from).Seconds()
	if whole <= 0 {
		return nil
	}
	at := func(t time.Time) float64 { return percent(t.Sub(from).Seconds() / whole) }
	t := &timeline{Title: "phases and attempts of the run over " + span(to.Sub(from))}
	phases := r.folder.Phases()
	if n := len(phases); n > 0 && report.Ended == nil && phases[n-1].To.Before(to) {
		phases[n-1].To = to
	}
	for _, p := range phases[max(0, len(phases)-mostBars):] {
		b := bar{Class: "p-" + p.Name, Title: p.Name + ", " + span(p.To.Sub(p.From)), X: at(p.From)}
		b.W = max(0.2, at(p.To)-b.X)
		t.Phases = append(t.Phases, b)
		if !slices.Contains(t.Legend, p.Name) {
			t.Legend = append(t.Legend, p.Name)
		}
	}
	for _, a := range report.Attempts[max(0, len(report.Attempts)-mostBars):] {
		if a.Started == nil {
			continue
		}
		end := to
		if a.Ended != nil {
			end = *a.Ended
		}
		b := bar{Class: attemptTone(a), Title: fmt.Sprintf("attempt %d: %s, %s", a.Number, attemptWord(a), span(end.Sub(*a.Started))), X: at(*a.Started)}
		if b.W = max(0.2, at(end)-b.X); b.W > 6 {
			b.Label = fmt.Sprint(a.Number)
		}
		t.Attempts = append(t.Attempts, b)
	}
	y := barHeight + 8
	if len(t.Attempts) > 0 {
		y += barHeight + 2
	}
	t.Lanes = r.rows(y, r.everyMark(), func(m Mark) (float64, bool) {
		return at(m.Time), !m.Time.IsZero() && !m.Time.After(to) && !m.Time.Before(from)
	})
	t.Axis = y + laneHeight*len(t.Lanes) + 4
	t.Height = t.Axis + axisHeight
	t.Ticks = timeTicks(whole)
	return t
}

// percent converts a share to percent. It limits the result to the picture.
func percent(share float64) float64 {
	return math.Round(1e4*max(0, min(1, share))) / 100
}

// everyMark returns the marks of all events.
func (r *Recorder) everyMark() (all []Mark) {
	for _, m := range r.marks {
		all = append(all, m.all()...)
	}
	return all
}

// rows makes a row for each lane that has marks, beginning at y. place returns the position of a mark, and
// whether it is in the picture. Marks that would cover each other become one mark.
func (r *Recorder) rows(y int, marks []Mark, place func(Mark) (float64, bool)) (out []row) {
	for lane := range lanes {
		row := row{Lane: lane, Name: lane.String(), Y: y + laneHeight*len(out) + 24}
		for _, m := range marks {
			x, in := place(m)
			if m.Lane != lane || !in {
				continue
			}
			row.Marks = append(row.Marks, dot{x, markText(m)})
		}
		if len(row.Marks) == 0 {
			continue
		}
		if left := r.marks[lane].left; left > 0 {
			row.Name += ", " + text.Count(left, "more mark") + " left out"
		}
		slices.SortStableFunc(row.Marks, func(a, b dot) int { return cmp.Compare(a.X, b.X) })
		row.Marks = joined(row.Marks)
		out = append(out, row)
	}
	return out
}

// joined combines marks that are less than one percent of the width apart.
func joined(marks []dot) (out []dot) {
	for _, m := range marks {
		if n := len(out); n > 0 && m.X-out[n-1].X < 1 {
			out[n-1].Title = text.Clip(out[n-1].Title+"\n"+m.Title, 2000)
			continue
		}
		out = append(out, m)
	}
	return out
}

func markText(m Mark) string {
	out := clip(m.Text)
	if m.Step >= 0 {
		out = fmt.Sprintf("step %d: %s", m.Step, out)
	}
	if m.Attempt > 0 {
		out = fmt.Sprintf("attempt %d, %s", m.Attempt, out)
	}
	if !m.Time.IsZero() {
		out = m.Time.UTC().Format(time.TimeOnly) + " " + out
	}
	return out
}

// timeTicks returns the labels of an axis of whole seconds.
func timeTicks(whole float64) (out []tick) {
	units := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400}
	every := units[len(units)-1]
	for _, u := range units {
		if whole/u <= 5 {
			every = u
			break
		}
	}
	every = max(every, whole/5)
	for s := 0.0; s <= whole; s += every {
		out = append(out, tick{At: percent(s / whole), Label: clock(s)})
	}
	return anchored(out)
}

// clock formats a time since the beginning, as in "0", "1.5 s", "2 min" or "1 h 30 min".
func clock(s float64) string {
	if s == 0 {
		return "0"
	}
	if s < 60 {
		return number(s) + " s"
	}
	return span(seconds(s))
}

// anchored aligns the first and the last label with the ends of the axis.
func anchored(ticks []tick) []tick {
	for i := range ticks {
		switch t := &ticks[i]; {
		case t.At < 4:
			t.Anchor = "start"
		case t.At > 90:
			t.Anchor = "end"
		default:
			t.Anchor = "middle"
		}
	}
	return ticks
}

// attemptTone returns the colour of an attempt.
func attemptTone(a runreport.Attempt) string {
	switch attemptWord(a) {
	case succeeded:
		return "good"
	case running, placed:
		return "live"
	case ended:
		return "mild"
	}
	return "bad"
}

// The ends of attempts.
const (
	succeeded = "succeeded"
	failed    = "failed"
	ended     = "was ended"
	running   = "has not ended"
	placed    = "has not started"
)

func attemptWord(a runreport.Attempt) string {
	switch {
	case a.Started == nil:
		return placed
	case a.Ended == nil:
		return running
	case a.Good():
		return succeeded
	case a.Cause == nil:
		return ended
	case a.Cause.Category == job.Cancelled, a.Cause.Category == job.TimeLimit, a.Cause.Category == job.StoppedEarly:
		return ended
	}
	return failed
}
