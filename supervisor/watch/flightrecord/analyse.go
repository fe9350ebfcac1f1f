package flightrecord

import (
	"maps"
	"slices"
	"strings"
)

// Problem is what is wrong with the first collective of a process group that has not gone well.
type Problem struct {
	Group, Desc string
	Seq         int64
	Op          string
	// Missing are the ranks of the group that did not get as far as this collective, although they have
	// written a dump. A rank that hangs inside of the call itself has not recorded it yet.
	Missing []int
	// Differing are the ranks whose operation, or sizes or types of tensors, are not those of most.
	Differing []int
	// Silent are the ranks of the group without a dump. If there are some and Missing and Differing are empty, it
	// is undecided who is to blame.
	Silent []int
	// Waiting are the ranks that have called it, and for which it is not complete.
	Waiting []int
}

// Analyse finds the first problem of each process group, and the ranks that are to blame: those that
// are missing from a collective, or differ in it, and do not wait in another group themselves for others. It has
// PyTorch's fr_trace as its model, but blames the minority where ranks differ.
func Analyse(dumps []Dump) (problems []Problem, blamed []int) {
	groups := map[string]Group{}
	for _, d := range dumps {
		for name, g := range d.Groups {
			if len(g.Ranks) > len(groups[name].Ranks) {
				groups[name] = g
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if p, ok := problemOf(name, groups[name], dumps); ok {
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
	if len(blamed) == 0 { // they wait for each other in a circle
		blamed = at
	}
	return problems, blamed
}

// problemOf finds the first collective of a group that some ranks lack or that ranks have called in
// different ways. If there is none, it finds the first that is not complete.
func problemOf(name string, g Group, dumps []Dump) (Problem, bool) {
	calls := map[int]map[int64]Entry{} // by rank and sequence number
	var silent []int
	seen := map[int64]bool{}
	var first int64
	for _, rank := range g.Ranks {
		i := slices.IndexFunc(dumps, func(d Dump) bool { return d.Rank == rank })
		if i < 0 {
			silent = append(silent, rank)
			continue
		}
		calls[rank] = map[int64]Entry{}
		for _, e := range dumps[i].Entries {
			if e.Group == name && !e.PeerToPeer {
				calls[rank][e.Seq] = e
				seen[e.Seq] = true
			}
		}
		// The record is a ring: what some rank has lost already is not compared.
		if seqs := slices.Sorted(maps.Keys(calls[rank])); len(seqs) > 0 {
			first = max(first, seqs[0])
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(seen)) {
		if seq < first {
			continue
		}
		p := Problem{Group: name, Desc: g.Desc, Seq: seq, Silent: silent}
		var there []Entry
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
			}
		}
		usual := most(there)
		p.Op = usual.Op
		for i, e := range there {
			if form(e) != form(usual) {
				p.Differing = append(p.Differing, ranks[i])
			}
		}
		// A collective that is complete although a rank lacks its record has only been lost there.
		if len(p.Waiting) > 0 && (len(p.Missing) > 0 || len(p.Differing) > 0 || len(silent) > 0 || allToAll(p.Op) && unequal(there)) {
			return p, true
		}
	}
	return Problem{}, false
}

// form is what the calls of all ranks must have in common. In some collectives, ranks may have tensors of
// different sizes.
func form(e Entry) string {
	if allToAll(e.Op) || strings.Contains(e.Op, "gather") || strings.Contains(e.Op, "scatter") {
		return e.Op
	}
	return e.Op + " " + e.In + " " + e.Out
}

func allToAll(op string) bool {
	return strings.Contains(op, "all_to_all") || strings.Contains(op, "alltoall")
}

// unequal reports whether the ranks of an all-to-all send more or fewer numbers than they receive.
func unequal(entries []Entry) bool {
	var sum int64
	for _, e := range entries {
		sum += e.InSize - e.OutSize
	}
	return sum != 0
}

// most returns an entry of the form that most have; the first of these if several are as common.
func most(entries []Entry) Entry {
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
