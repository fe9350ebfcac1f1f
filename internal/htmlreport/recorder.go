// Package htmlreport makes report.html, the page that shows a run. It computes HTML from the run's events and
// curves, and has no side effects. The page needs no network, no script and no other file.
package htmlreport

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Recorder collects what the page shows from the events of a run. Its memory does not grow with the number of
// steps. The zero Recorder is ready to use.
type Recorder struct {
	folder  runreport.Folder
	latest  time.Time     // the latest time of any event
	marks   [lanes]marked // by lane
	paces   map[int]*pace // by attempt
	current int           // the attempt to which ranks and place belong
	place   job.Placement // of the latest attempt
	ranks   map[int]last  // of the latest attempt
	batch   string
}

// pace describes the progress of an attempt.
type pace struct {
	step int64 // the highest step; -1 before the first
	// steps has the highest step over time, in seconds since 1970. loss has the losses of the rank by step.
	steps, loss series
	rank        int // the lowest rank that has reported a loss; -1 if there is none
}

// last has the last values that a rank has reported.
type last struct {
	step   int64 // -1 if the rank has printed no step
	loss   *float64
	lossIs string
}

// Add adds the next event of the run's journal.
func (r *Recorder) Add(e job.Event) {
	r.folder.Add(e)
	if e.Time.After(r.latest) {
		r.latest = e.Time
	}
	if e.Kind == job.KindPlaced && e.Attempt > 0 && e.Placement != nil {
		r.current, r.place, r.ranks = e.Attempt, *e.Placement, map[int]last{}
	}
	if e.Kind == job.KindProgress && e.Progress != nil && e.Attempt > 0 {
		r.progress(e)
	}
	if m, ok := markOf(e); ok {
		if m.Step < 0 && e.Attempt > 0 {
			m.Step = r.pace(e.Attempt).step
		}
		r.marks[m.Lane].add(m)
	}
}

func (r *Recorder) pace(attempt int) *pace {
	if r.paces == nil {
		r.paces = map[int]*pace{}
	}
	if r.paces[attempt] == nil {
		r.paces[attempt] = &pace{step: -1, rank: -1}
	}
	return r.paces[attempt]
}

// progress adds the progress of a rank.
func (r *Recorder) progress(e job.Event) {
	p, now := r.pace(e.Attempt), *e.Progress
	if at := now.At(); at > p.step {
		p.step = at
		p.steps.add(float64(e.Time.UnixMicro())/1e6, float64(at))
	}
	if now.HasLoss() && (p.rank < 0 || e.Rank <= p.rank) {
		if e.Rank != p.rank {
			p.rank, p.loss = e.Rank, series{}
		}
		p.loss.add(float64(now.At()), lossOf(now))
	}
	if e.Attempt == r.current {
		l := last{now.At(), now.Loss, now.LossIs}
		if old, ok := r.ranks[e.Rank]; ok && !now.HasLoss() {
			l.loss, l.lossIs = old.loss, old.lossIs
		}
		r.ranks[e.Rank] = l
	}
}

// Report returns the report of the run so far.
func (r *Recorder) Report() runreport.Report { return r.folder.Report() }

// LossRank returns the lowest rank that has reported a loss in an attempt. It returns -1 if no rank has.
func (r *Recorder) LossRank(attempt int) int {
	if p := r.paces[attempt]; p != nil {
		return p.rank
	}
	return -1
}

// Loss returns the losses that one rank of an attempt has reported. LossRank returns the number of that rank.
func (r *Recorder) Loss(attempt int) []Point {
	if p := r.paces[attempt]; p != nil {
		return p.loss.points
	}
	return nil
}
