package stacktree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Suspect says which ranks probably hold up the others.
type Suspect struct {
	Ranks []int // in order; empty if no rank stands out
	Why   string
	// Confidence is from 0 to 1. The figures of the rules are judgements, not measured.
	Confidence float64
}

// view is what is known of the ranks of a gang.
type view struct {
	groups []job.StackGroup
	of     map[int]*job.StackGroup // by rank
	pulses map[int]job.Pulse
	ranks  []int
}

// Odd finds the ranks that probably hold up the others. It knows each rank's group, if its stack
// was read, and its pulse, if there is one. The first rule that names ranks decides; the rules are in the
// order of how seldom they are wrong.
func Odd(groups []job.StackGroup, pulses []job.Pulse) Suspect {
	v := view{groups: groups, of: map[int]*job.StackGroup{}, pulses: map[int]job.Pulse{}}
	for i := range groups {
		for _, r := range groups[i].Ranks {
			v.of[r] = &groups[i]
			v.ranks = append(v.ranks, r)
		}
	}
	for _, p := range pulses {
		v.pulses[p.Rank] = p
		v.ranks = append(v.ranks, p.Rank)
	}
	slices.Sort(v.ranks)
	v.ranks = slices.Compact(v.ranks)
	for _, rule := range []func() (Suspect, bool){v.cannotRun, v.outside, v.mismatch, v.behind, v.offNetwork, v.elsewhere} {
		if s, ok := rule(); ok {
			return s
		}
	}
	if len(v.groups) == 1 && len(v.ranks) > 1 {
		return Suspect{Why: "all ranks are " + in(groups[0])}
	}
	return Suspect{Why: "no rank stands out"}
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

// state is the state of the thread whose stack was read, or else of the process, if it cannot run in
// it: the stack is the later look.
func (v view) state(rank int) job.ProcessState {
	if g := v.of[rank]; g != nil && g.State != "" {
		return fixed(g.State)
	}
	return fixed(v.pulses[rank].State)
}

// cannotRun finds ranks that cannot run at all. Nothing but that is needed to explain a hang, so it
// comes first and is almost certain. It says little if no rank can run: then the cause is outside of them. A
// process in an uninterruptible sleep may just wait for a slow disk, and one whose main thread has
// ended may have other threads that work.
func (v view) cannotRun() (Suspect, bool) {
	for _, rule := range []struct {
		state      job.ProcessState
		words      string
		confidence float64
	}{
		{job.ProcessStopped, "stopped by a signal", 0.97},
		{job.ProcessTraced, "stopped by a debugger", 0.97},
		{job.ProcessZombie, "without a main thread: it has ended", 0.9},
		{job.ProcessDisk, "hanging in the kernel, where no signal arrives", 0.9},
	} {
		ranks := v.where(func(r int) bool { return v.state(r) == rule.state })
		if len(ranks) == 0 {
			continue
		}
		verb := " is "
		if len(ranks) > 1 {
			verb = " are "
		}
		s := Suspect{Ranks: ranks, Why: named(ranks) + verb + rule.words, Confidence: rule.confidence}
		if g := v.of[ranks[0]]; rule.state == job.ProcessDisk && g != nil && len(ranks) == len(g.Ranks) && g.Where != "" {
			s.Why += ": " + g.Where
		}
		if 2*len(ranks) > len(v.ranks) { // it is what most ranks have in common
			s.Confidence /= 2
		}
		if len(ranks) == len(v.ranks) {
			s.Ranks, s.Confidence = nil, 0
		}
		return s, true
	}
	return Suspect{}, false
}

// waits reports whether a rank waits for other ranks, and whether that is known. A stack with frames
// says so. Else the phase does: if some rank is at a meeting point of MPI, one that is not there is
// expected there.
func (v view) waits(rank int) (waits, known bool) {
	if g := v.of[rank]; g != nil && len(g.Frames) > 0 {
		return g.Collective, true
	}
	phase := v.pulses[rank].Phase
	if meets(phase) || phase == job.PhaseLeft { // after MPI_Finalize, it holds up nobody
		return true, true
	}
	for _, p := range v.pulses {
		if meets(p.Phase) {
			return false, true
		}
	}
	return false, false
}

func meets(phase job.RankPhase) bool {
	return phase == job.PhaseInit || phase == job.PhaseBarrier
}

// outside finds the ranks that are not in a call for other ranks while the rest wait in one. It is the
// usual picture of a hang. It is less sure if the others wait in different calls, and if most ranks are outside:
// then some of those outside may only be on their way.
func (v view) outside() (Suspect, bool) {
	var out, waiting []int
	for _, r := range v.ranks {
		switch waits, known := v.waits(r); {
		case known && waits:
			waiting = append(waiting, r)
		case known:
			out = append(out, r)
		}
	}
	if len(out) == 0 || len(waiting) == 0 {
		return Suspect{}, false
	}
	confidence := 0.9
	if len(v.calls(waiting)) > 1 {
		confidence = 0.75
	}
	if 2*len(out) > len(v.ranks) {
		confidence = 0.5
	}
	if late, _ := v.late(); confidence >= 0.75 && slices.Equal(late, out) {
		confidence = 0.95 // two signs that do not depend on each other
	}
	return Suspect{Ranks: out, Confidence: confidence,
		Why: fmt.Sprintf("%s, while %s for other ranks%s", v.places(out), waitFor(waiting), v.inCalls(waiting))}, true
}

func waitFor(ranks []int) string {
	if len(ranks) == 1 {
		return named(ranks) + " waits"
	}
	return named(ranks) + " wait"
}

func (v view) inCalls(ranks []int) string {
	if calls := v.calls(ranks); len(calls) == 1 && calls[0] != "" {
		return " in " + calls[0]
	}
	return ""
}

// places says where ranks are, if they are in the same group.
func (v view) places(ranks []int) string {
	verb := "are"
	if len(ranks) == 1 {
		verb = "is"
	}
	if g := v.of[ranks[0]]; g != nil && !slices.ContainsFunc(ranks, func(r int) bool { return v.of[r] != g }) {
		return named(ranks) + " " + verb + " " + in(*g)
	}
	return named(ranks) + " " + verb + " elsewhere"
}

// call returns the name of the call in which a rank waits.
func (v view) call(rank int) string {
	g := v.of[rank]
	if g == nil || !g.Collective {
		return ""
	}
	name, _, _ := strings.Cut(g.Where, " (")
	return name
}

func (v view) calls(ranks []int) (calls []string) {
	for _, r := range ranks {
		if call := v.call(r); !slices.Contains(calls, call) {
			calls = append(calls, call)
		}
	}
	return calls
}

// mismatch finds ranks that wait in another call than most, if all wait in one. A program may well
// have some ranks receive what others send, and the ranks of different groups may be in different collectives: so this
// is less sure. If no call has the majority, or ranks are in the call of most at several places, it names
// no ranks: a library may use one call for the parts of another.
func (v view) mismatch() (Suspect, bool) {
	by := map[string][]int{}
	for _, r := range v.ranks {
		call := v.call(r)
		if call == "" {
			return Suspect{}, false
		}
		by[call] = append(by[call], r)
	}
	if len(by) < 2 {
		return Suspect{}, false
	}
	most := ""
	for call, ranks := range by {
		if len(ranks) > len(by[most]) {
			most = call
		}
	}
	if 2*len(by[most]) <= len(v.ranks) || v.scattered(by[most]) {
		return Suspect{Why: "ranks wait for each other in different calls: " + Text(v.groups), Confidence: 0.5}, true
	}
	others := v.where(func(r int) bool { return v.call(r) != most })
	confidence := 0.6
	if 4*len(others) <= len(v.ranks) {
		confidence = 0.8
	}
	return Suspect{Ranks: others, Confidence: confidence,
		Why: fmt.Sprintf("%s, while %s in %s", v.places(others), waitFor(by[most]), most)}, true
}

// scattered reports whether ranks are at several places.
func (v view) scattered(ranks []int) bool {
	return slices.ContainsFunc(ranks, func(r int) bool { return v.of[r] != v.of[ranks[0]] })
}

// late returns the ranks whose last reported step is before that of most of the ranks that report any.
func (v view) late() (ranks []int, step int64) {
	count := map[int64]int{}
	total := 0
	for _, p := range v.pulses {
		if p.Progress != nil && p.Progress.At() >= 0 {
			count[p.Progress.At()]++
			total++
		}
	}
	for s, n := range count {
		if 2*n > total {
			step = s
			return v.where(func(r int) bool { p := v.pulses[r].Progress; return p != nil && p.At() >= 0 && p.At() < s }), step
		}
	}
	return nil, 0
}

// behind finds ranks at an earlier step than most. Their output may only have been delayed, so this comes
// after what the stacks say.
func (v view) behind() (Suspect, bool) {
	ranks, step := v.late()
	if len(ranks) == 0 {
		return Suspect{}, false
	}
	verb := "has"
	if len(ranks) > 1 {
		verb = "have"
	}
	return Suspect{Ranks: ranks, Confidence: 0.6, Why: fmt.Sprintf("%s %s not reached step %d, which most ranks have reached", named(ranks), verb, step)}, true
}

// offNetwork finds the ranks that do not wait for data on a socket, where most do: the data may have to
// come from one of the few.
func (v view) offNetwork() (Suspect, bool) {
	waits := func(r int) bool { g := v.of[r]; return g != nil && (g.Network || g.Collective) }
	on, off := v.where(waits), v.where(func(r int) bool { return v.of[r] != nil && !waits(r) })
	if len(off) == 0 || 2*len(on) <= len(v.ranks) {
		return Suspect{}, false
	}
	confidence := 0.7
	if late, _ := v.late(); slices.Equal(late, off) {
		confidence = 0.85
	}
	return Suspect{Ranks: off, Confidence: confidence, Why: fmt.Sprintf("%s, while %s on the network", v.places(off), waitFor(on))}, true
}

// elsewhere finds the few ranks that are not where most are. This is all that can be said if no
// communication library is known by its names.
func (v view) elsewhere() (Suspect, bool) {
	if len(v.groups) < 2 || len(v.groups[0].Ranks)*2 <= len(v.ranks) {
		return Suspect{}, false
	}
	most := &v.groups[0]
	if most.Where == "" {
		return Suspect{}, false
	}
	ranks := v.where(func(r int) bool {
		g := v.of[r]
		return g != nil && g != most && g.Where != "" && (len(g.Frames) > 0 || len(most.Frames) == 0)
	})
	if len(ranks) == 0 {
		return Suspect{}, false
	}
	confidence := 0.4
	if 4*len(ranks) <= len(v.ranks) {
		confidence = 0.55
	}
	return Suspect{Ranks: ranks, Confidence: confidence, Why: v.places(ranks) + ", while most ranks are " + in(*most)}, true
}
