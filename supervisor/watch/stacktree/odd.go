package stacktree

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// Suspect says which ranks probably hold up the others.
type Suspect struct {
	Ranks []int // in order; empty if no rank stands out
	Why   string
	// Confidence is from 0 to 1. The confidences are estimates; nobody has measured how often the rules are
	// right.
	Confidence float64
}

// Rank is what is known about a rank from its pulses.
type Rank struct {
	job.Pulse // the last pulse
	// Busy is true if the rank has used CPU time since the last progress of the gang. Asleep is true if it has
	// used hardly any. Both are false if it is not clear how much it has used.
	Busy, Asleep bool
}

// view is what is known of the ranks of a gang, for the rules.
type view struct {
	groups  []job.StackGroup
	of      map[int]*job.StackGroup // by rank
	pulses  map[int]Rank
	ranks   []int
	meeting bool // some rank is at a meeting point of MPI
}

// Odd finds the ranks that probably hold up the others. groups has the ranks whose stacks were read, and pulses
// has the ranks that have a pulse. Each rule finds at most one Suspect. Odd returns the Suspect with the
// highest confidence.
func Odd(groups []job.StackGroup, pulses []Rank) (odd Suspect) {
	v := newView(groups, pulses)
	for _, rule := range []func() Suspect{v.cannotRun, v.outside, v.finalizing, v.mismatch, v.behind, v.offNetwork, v.unlike, v.elsewhere} {
		if s := rule(); s.Why != "" && (odd.Why == "" || s.Confidence > odd.Confidence) {
			odd = s
		}
	}
	switch {
	case odd.Why != "":
		return odd
	case len(v.groups) == 1 && len(v.ranks) > 1:
		return Suspect{Why: "all ranks are " + in(groups[0])}
	case len(v.groups) == 1:
		return Suspect{Why: named(v.ranks) + " is " + in(groups[0])}
	case len(v.groups) > 1:
		return Suspect{Why: "no rank stands out: " + some(groups)}
	}
	return Suspect{Why: "no rank stands out"}
}

func newView(groups []job.StackGroup, pulses []Rank) view {
	v := view{groups: groups, of: map[int]*job.StackGroup{}, pulses: map[int]Rank{}}
	for i := range groups {
		for _, r := range groups[i].Ranks {
			v.of[r] = &groups[i]
			v.ranks = append(v.ranks, r)
		}
	}
	for _, p := range pulses {
		v.pulses[p.Rank] = p
		v.ranks = append(v.ranks, p.Rank)
		v.meeting = v.meeting || meets(p.Phase)
	}
	slices.Sort(v.ranks)
	v.ranks = slices.Compact(v.ranks)
	return v
}

// Finalizing returns the ranks that are in MPI_Finalize while all others wait in other calls for other ranks. It
// returns no ranks if that is not so.
func Finalizing(groups []job.StackGroup) Suspect {
	return newView(groups, nil).finalizing()
}

// where returns the ranks for which f is true.
func (v view) where(f func(rank int) bool) (ranks []int) {
	for _, r := range v.ranks {
		if f(r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// few reports whether ranks are some, but less than half, of all ranks.
func (v view) few(ranks []int) bool { return len(ranks) > 0 && 2*len(ranks) < len(v.ranks) }
