package watch

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

const (
	// raisedLimit is how long the last output of a rank must have been an exception before gangrun reads the
	// stacks of the gang.
	raisedLimit = 10 * time.Second
	// raisedEvery is the time between two readings. If a reading shows no hang, because the program has caught the
	// exception, this time doubles, up to raisedRarely. raisedLooks is the number of readings in a row that must show
	// the same.
	raisedEvery  = 5 * time.Second
	raisedRarely = 10 * time.Minute
	raisedLooks  = 2
)

// raised returns the ranks whose last output has been a Python exception for at least limit.
func (w *Watch) raised(limit time.Duration) (ranks []int) {
	for _, number := range w.living() {
		if r := w.ranks[number]; r.last.Raised && w.clock-r.raised >= limit {
			ranks = append(ranks, number)
		}
	}
	return ranks
}

// raisedLast returns the ranks that have printed a Python exception and nothing since. It leaves out a rank if the gang
// has made progress for a long time after the exception: the program must then have caught the exception.
func (w *Watch) raisedLast() []int {
	return slices.DeleteFunc(w.raised(0), func(rank int) bool { return w.ranks[rank].raised < w.progress.last-w.limit()/gapFactor })
}

// fell returns the report of a hang if ranks that have raised an exception are in MPI_Finalize, and all others
// wait in other calls of MPI. These calls can never end. mpi4py calls MPI_Finalize at the end of a program even
// after an exception.
func (w *Watch) fell(stacks []job.RankStack) *job.HangReport {
	ranks := w.raised(raisedLimit)
	if len(ranks) == 0 {
		return nil
	}
	w.doubts.fall.next = w.clock + raisedEvery
	groups := stacktree.Groups(w.settled(stacks))
	odd := stacktree.Finalizing(groups)
	if len(odd.Ranks) == 0 || slices.ContainsFunc(odd.Ranks, func(r int) bool { return !slices.Contains(ranks, r) }) {
		w.doubts.every = min(max(2*w.doubts.every, raisedEvery), raisedRarely)
		w.doubts.fall = doubt{next: w.clock + w.doubts.every}
		return nil
	}
	if places := stacktree.Text(groups); places != w.doubts.fall.places {
		w.doubts.fall.places, w.doubts.fall.looks = places, 0
	}
	if w.doubts.fall.looks++; w.doubts.fall.looks < raisedLooks {
		return nil
	}
	since := w.clock
	for _, r := range odd.Ranks {
		since = min(since, w.ranks[r].raised)
	}
	stage, _ := w.stage()
	h := w.Blame(job.HangReport{
		Since: w.arrived.Add(since - w.clock), Limit: job.Duration(raisedLimit), Stage: stage, Signs: w.shown(w.clock - since),
		Ranks: odd.Ranks, Why: odd.Why, Confidence: 0.95, Step: w.step(),
	}, stacks)
	h.Raised = odd.Ranks // the stacks show that the exceptions of these ranks are the reason
	return &h
}
