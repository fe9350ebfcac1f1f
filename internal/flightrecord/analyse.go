package flightrecord

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Analyse finds the first problem of each process group, and the ranks to blame. These are missing from a
// collective, or call it differently than most ranks of the group, and do not wait for other ranks in another
// group. Analyse follows PyTorch's program torchfrtrace, but if the ranks of a group differ, it blames the
// minority.
func Analyse(records []job.FlightRecord) (problems []job.CollectiveProblem, blamed []int) {
	groups := map[string]job.ProcessGroup{}
	for _, d := range records {
		for name, g := range d.Groups {
			if len(g.Ranks) > len(groups[name].Ranks) {
				groups[name] = g
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if p, ok := problemOf(name, groups[name], records); ok {
			problems = append(problems, p)
		}
	}
	var at, waiting []int
	for _, p := range problems {
		at = append(append(at, p.Missing...), p.Differing...)
		if len(p.Missing) > 0 {
			waiting = append(waiting, p.Waiting...)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	blamed = slices.DeleteFunc(slices.Clone(at), func(r int) bool { return slices.Contains(waiting, r) })
	if len(blamed) == 0 { // the ranks wait for each other in a circle
		blamed = at
	}
	return problems, blamed
}

// problemOf returns the first collective of a process group that some ranks have not called, or that ranks
// have called in different ways. If there is none, it returns the first collective that is not complete. ok
// is false if there is none either.
func problemOf(name string, g job.ProcessGroup, records []job.FlightRecord) (job.CollectiveProblem, bool) {
	calls := map[int]map[int64]job.CollectiveCall{} // by rank and sequence number
	var silent []int
	seen := map[int64]bool{}
	var first int64
	for _, rank := range g.Ranks {
		i := slices.IndexFunc(records, func(d job.FlightRecord) bool { return d.Rank == rank })
		if i < 0 {
			silent = append(silent, rank)
			continue
		}
		calls[rank] = map[int64]job.CollectiveCall{}
		for _, e := range records[i].Calls {
			if e.Group == name && !e.PeerToPeer {
				calls[rank][e.Seq] = e
				seen[e.Seq] = true
			}
		}
		// A flight recorder forgets old calls. Calls that one of the ranks has forgotten are not compared.
		if seqs := slices.Sorted(maps.Keys(calls[rank])); len(seqs) > 0 {
			first = max(first, seqs[0])
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(seen)) {
		if seq < first {
			continue
		}
		p := job.CollectiveProblem{Group: name, Desc: g.Desc, Seq: seq, Silent: silent}
		var there []job.CollectiveCall
		var ranks []int
		for _, rank := range slices.Sorted(maps.Keys(calls)) {
			e, ok := calls[rank][seq]
			if !ok {
				p.Missing = append(p.Missing, rank)
				continue
			}
			there, ranks = append(there, e), append(ranks, rank)
			if e.State != "completed" {
				p.Waiting = append(p.Waiting, rank)
				p.Where = cmp.Or(p.Where, e.Where)
			}
		}
		usual := most(there)
		p.Op = usual.Op
		for i, e := range there {
			if form(e) != form(usual) {
				p.Differing = append(p.Differing, ranks[i])
			}
		}
		// If no rank waits in a collective, the ranks without a record of it have called it: their flight
		// recorders have forgotten it.
		if len(p.Waiting) > 0 && (len(p.Missing) > 0 || len(p.Differing) > 0 || len(silent) > 0 || allToAll(p.Op) && unequal(there)) {
			return p, true
		}
	}
	return job.CollectiveProblem{}, false
}

// form returns what must be equal in the calls of all ranks. In some collectives, the sizes of the tensors
// may differ.
func form(e job.CollectiveCall) string {
	if allToAll(e.Op) || strings.Contains(e.Op, "gather") || strings.Contains(e.Op, "scatter") {
		return e.Op
	}
	return e.Op + " " + e.In + " " + e.Out
}

func allToAll(op string) bool {
	return strings.Contains(op, "all_to_all") || strings.Contains(op, "alltoall")
}

// unequal reports whether the ranks of an all-to-all together send another number of elements than they
// receive.
func unequal(entries []job.CollectiveCall) bool {
	var sum int64
	for _, e := range entries {
		sum += e.InSize - e.OutSize
	}
	return sum != 0
}

// most returns an entry with the most common form. If several forms are equally common, it returns the first
// entry with one of them.
func most(entries []job.CollectiveCall) job.CollectiveCall {
	count := map[string]int{}
	for _, e := range entries {
		count[form(e)]++
	}
	best := entries[0]
	for _, e := range entries {
		if count[form(e)] > count[form(best)] {
			best = e
		}
	}
	return best
}
