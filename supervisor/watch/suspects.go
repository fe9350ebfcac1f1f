package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// maxSpans is how many spans of ranks are named.
const maxSpans = 8

// suspects returns the ranks that probably hold up the others, by their pulses alone, and why. There
// are none if no rank stands out.
func (w *Watch) suspects() (ranks []int, why string, confidence float64) {
	living := w.living()
	pick := func(is func(*rank) bool) (found []int) {
		for _, number := range living {
			if is(w.ranks[number]) {
				found = append(found, number)
			}
		}
		return found
	}
	minority := func(found []int) bool { return len(found) > 0 && 2*len(found) < len(living) }

	if found := pick(func(r *rank) bool { return halted(r.state) && w.clock-r.stateFor >= w.timeout/2 }); len(found) > 0 && len(found) < len(living) {
		return found, w.states(found), 0.95
	}
	if found := pick(func(r *rank) bool { return r.last.Phase == job.PhaseUnknown }); w.initialising() && len(found) > 0 {
		return found, who(found) + " " + has(found) + " not called MPI_Init", 0.9
	}
	inside := pick(func(r *rank) bool { return r.last.Phase == job.PhaseBarrier })
	if found := pick(func(r *rank) bool { return r.last.Phase == job.PhaseWorking }); minority(found) && len(inside)+len(found) == len(living) {
		return found, fmt.Sprintf("%s %s not in MPI_Finalize, the others wait there", who(found), is(found)), 0.85
	}
	if found, behind := w.behind(living); minority(found) {
		return found, fmt.Sprintf("%s %s at step %d, the others at step %d", who(found), is(found), behind.at, behind.others), 0.8
	}
	busy, idle := pick(w.busy), pick(w.asleep)
	switch {
	case len(busy)+len(idle) < len(living):
	case minority(idle):
		return idle, fmt.Sprintf("%s %s, while the others use CPU time", who(idle), verb(idle, "sleeps", "sleep")), 0.6
	case minority(busy):
		return busy, fmt.Sprintf("%s %s CPU time, while the others sleep", who(busy), verb(busy, "uses", "use")), 0.6
	}
	return nil, "no rank stands out", 0
}

// lag says at which step some ranks are, and the others.
type lag struct{ at, others int64 }

// behind returns the ranks whose step is lower than that of most, where all ranks report steps.
func (w *Watch) behind(living []int) (found []int, s lag) {
	var all []int64
	for _, number := range living {
		p := w.ranks[number].last.Progress
		if p == nil {
			return nil, s
		}
		all = append(all, p.At())
	}
	slices.Sort(all)
	if len(all) < 2 {
		return nil, s
	}
	s = lag{all[0], all[len(all)/2]}
	for _, number := range living {
		if s.at < s.others && w.ranks[number].last.Progress.At() == s.at {
			found = append(found, number)
		}
	}
	return found, s
}

// living returns the numbers of the ranks that have not ended, in order.
func (w *Watch) living() (all []int) {
	for _, number := range slices.Sorted(maps.Keys(w.ranks)) {
		if !w.ranks[number].ended {
			all = append(all, number)
		}
	}
	return all
}

// words are the states in which a rank can do nothing by itself.
var words = map[job.ProcessState]string{
	job.ProcessStopped: "stopped by a signal", job.ProcessTraced: "stopped by a debugger",
	job.ProcessDisk: "waiting in the kernel for a file system or a device", job.ProcessZombie: "without its main thread, which has ended",
}

// states says in which states ranks are.
func (w *Watch) states(ranks []int) string {
	byState := map[job.ProcessState][]int{}
	for _, number := range ranks {
		s := w.ranks[number].state
		byState[s] = append(byState[s], number)
	}
	var all []string
	for _, s := range slices.SortedFunc(maps.Keys(byState), cmp.Compare) {
		all = append(all, who(byState[s])+" "+is(byState[s])+" "+words[s])
	}
	return text.And(all)
}

func who(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return "ranks " + text.Spans(ranks, maxSpans)
}

func verb(ranks []int, one, several string) string {
	if len(ranks) == 1 {
		return one
	}
	return several
}

func is(ranks []int) string  { return verb(ranks, "is", "are") }
func has(ranks []int) string { return verb(ranks, "has", "have") }
