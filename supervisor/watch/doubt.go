package watch

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// doubts has the suspicions for which the pulses are not enough. The stacks of the ranks can show whether the
// gang hangs, if they remain the same.
type doubts struct {
	silence doubt // the job has never reported its progress regularly and uses CPU time: it may hang
	fall    doubt // ranks have printed a Python exception, but have not ended; see fell
	// every is the time between two looks because of an exception; 0 if there was no look since a rank has printed one.
	every time.Duration
}

// doubt is the state of one of these suspicions.
type doubt struct {
	next   time.Duration // the Watch's clock at the next look
	places string        // where each rank was at the last look, if that may be a hang
	looks  int           // number of looks in a row at which the ranks were at these places
}

// The numbers of looks in a row at which a gang must look the same before it counts as hung. The looks are
// spread over half of the limit, or over computeFactor times the limit if ranks compute.
const (
	looksBlocked = 3 // some ranks sleep outside of a communication call, and the others wait for them
	looksSpun    = 9 // all ranks are in communication calls; a healthy gang leaves them too fast to be seen there

	computeFactor = 2
)

// Doubtful reports whether only the stacks of the ranks can tell whether the gang hangs.
func (w *Watch) Doubtful() bool {
	if w.timeout > 0 && len(w.living()) > 1 && w.clock >= w.doubts.fall.next && len(w.raised(raisedLimit)) > 0 {
		return true
	}
	return w.timeout > 0 && len(w.living()) > 1 && w.quiet() && w.clock >= w.doubts.silence.next
}

// quiet reports whether a gang that has worked shows neither progress nor weak signs of life, although it has never
// reported its progress regularly.
func (w *Watch) quiet() bool {
	limit := w.limit()
	return !w.rhythm(limit) && w.silent() > limit && w.clock-w.weak.last > limit && (w.progress.moves > 0 || w.worked())
}

// Judge returns the report of a hang if stacks shows that the gang hangs, and otherwise nil. The caller
// collects stacks when Doubtful returns true.
func (w *Watch) Judge(stacks []job.RankStack) *job.HangReport {
	if h := w.fell(stacks); h != nil {
		return h
	}
	limit := w.limit()
	silent := w.silent()
	if !w.quiet() { // there has been a sign of life, or gangrun has looked only because of an exception
		w.doubts.silence = doubt{}
		return nil
	}
	if w.clock < w.doubts.silence.next {
		return nil
	}
	stacks = w.settled(stacks)
	groups := stacktree.Groups(stacks)
	odd := stacktree.Odd(groups, w.pulses())
	looks, computes := w.looksNeeded(groups, odd.Ranks, silent > weakFactor*limit)
	span := limit / 2
	if computes {
		span = computeFactor * limit
	}
	if places := stacktree.Text(groups) + stacktree.Processes(stacks, odd.Ranks); looks == 0 {
		w.doubts.silence = doubt{}
	} else if w.doubts.silence.looks++; places != w.doubts.silence.places {
		w.doubts.silence = doubt{places: places, looks: 1}
	}
	w.doubts.silence.next = w.clock + span/time.Duration(max(looks-1, 1))
	if looks == 0 || w.doubts.silence.looks < looks {
		return nil
	}
	stage, _ := w.stage()
	h := w.Blame(job.HangReport{
		Since: w.arrived.Add(-silent), Limit: job.Duration(limit), Stage: stage, Signs: w.shown(silent),
		Ranks: odd.Ranks, Why: odd.Why, Confidence: odd.Confidence, Step: w.step(),
	}, stacks)
	return &h
}

// looksNeeded returns how many times in a row a gang must look the same until it counts as hung. It returns 0
// if the gang does not look like it hangs. odd are the ranks that stand out. computes is true if these ranks
// compute. long is true if the gang has been silent for a long time.
func (w *Watch) looksNeeded(groups []job.StackGroup, odd []int, long bool) (looks int, computes bool) {
	computing, waiting, known := activity(groups)
	// The main thread of a rank may sleep while its other threads or processes compute.
	for _, g := range groups {
		for _, r := range g.Ranks {
			if !g.Collective && !g.Network && g.State != job.ProcessRunning && w.ranks[r] != nil && w.busy(w.ranks[r]) {
				computing = append(computing, r)
			}
		}
	}
	slices.Sort(computing)
	asleep := func(rank int) bool { return w.asleep(w.ranks[rank]) }
	switch {
	case known != len(w.living()) || waiting == 0:
		return 0, false
	case len(odd) == 0:
		if waiting == known && len(groups) > 1 && !slices.ContainsFunc(groups, func(g job.StackGroup) bool { return !g.Collective }) {
			return looksSpun, false // ranks wait for each other in different calls
		}
		return 0, false
	case len(computing) > 0: // an endless loop, or work that takes long
		if long && slices.Equal(computing, odd) && 2*len(computing) < known {
			return looksBlocked, true
		}
		return 0, false
	case waiting < known && !slices.ContainsFunc(odd, func(r int) bool { return !asleep(r) }):
		return looksBlocked, false
	}
	return looksSpun, false
}

// activity returns the ranks that compute, the number of ranks that wait for others, and the number of ranks of
// which it is known what they do.
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
