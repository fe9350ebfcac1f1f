package watch

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// doubt is a silence of which the signs of life alone do not tell whether it is a hang: a job that has
// never told its progress regularly uses CPU time. Its stacks may tell, if they stay the same.
type doubt struct {
	next   time.Duration // clock of the next look
	places string        // where each rank was at the last look, if that may be a hang
	looks  int           // how often in a row that was so
}

// How often in a row, over half of the limit, a gang must look the same.
const (
	looksBlocked = 3 // ranks sleep outside of a call for others, and the others wait
	looksSpun    = 9 // all ranks are in calls for others, which they leave too fast to see in a healthy gang, too
)

// Doubtful reports whether only the stacks of the ranks can tell whether the gang hangs.
func (w *Watch) Doubtful() bool {
	limit := w.limit()
	silent := w.silent()
	return w.timeout > 0 && len(w.living()) > 1 && !w.rhythm(limit) &&
		silent > limit && w.clock-w.weak.last > limit && w.clock >= w.doubt.next && (w.progress.moves > 0 || w.worked())
}

// Judge returns the report of a hang if stacks shows that the gang hangs, and otherwise nil. The caller
// collects stacks when Doubtful returns true.
func (w *Watch) Judge(stacks []job.RankStack) *job.HangReport {
	limit := w.limit()
	silent := w.silent()
	stacks = w.settled(stacks)
	groups := stacktree.Groups(stacks)
	odd := stacktree.Odd(groups, w.pulses())
	looks := w.looksNeeded(groups, odd.Ranks, silent > weakFactor*limit)
	if places := stacktree.Text(groups); looks == 0 || silent <= limit {
		w.doubt = doubt{}
	} else if w.doubt.looks++; places != w.doubt.places {
		w.doubt = doubt{places: places, looks: 1}
	}
	w.doubt.next = w.clock + limit/2/time.Duration(max(looks-1, 1))
	if looks == 0 || w.doubt.looks < looks {
		return nil
	}
	stage, _ := w.stage()
	h := w.Blame(job.HangReport{
		Since: w.arrived.Add(-silent), Limit: job.Duration(limit), Stage: stage, Signs: w.shown(silent),
		Ranks: odd.Ranks, Why: odd.Why, Confidence: odd.Confidence, Step: w.step(),
	}, stacks)
	return &h
}

// looksNeeded returns how often in a row a gang must look the same until it counts as hung; 0 if what
// it looks like is no hang. long is true if it has been silent for a long time.
func (w *Watch) looksNeeded(groups []job.StackGroup, odd []int, long bool) int {
	computing, waiting, known := activity(groups)
	asleep := func(rank int) bool { return w.asleep(w.ranks[rank]) }
	switch {
	case known != len(w.living()) || waiting == 0 || len(odd) == 0:
		return 0
	case len(computing) > 0: // an endless loop, or work that takes long
		if long && slices.Equal(computing, odd) && 2*len(computing) < known {
			return looksBlocked
		}
		return 0
	case waiting < known && !slices.ContainsFunc(odd, func(r int) bool { return !asleep(r) }):
		return looksBlocked
	}
	return looksSpun
}

// activity returns the ranks that compute, how many wait for others, and of how many it is known what
// they do.
func activity(groups []job.StackGroup) (computing []int, waiting, known int) {
	for _, g := range groups {
		switch {
		case g.Collective || g.Network:
			waiting += len(g.Ranks)
		case g.State == job.ProcessRunning:
			computing = append(computing, g.Ranks...)
		case g.Where == "" && len(g.Frames) == 0:
			continue
		}
		known += len(g.Ranks)
	}
	slices.Sort(computing)
	return computing, waiting, known
}
