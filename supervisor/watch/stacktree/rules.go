package stacktree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// state is the state of the thread whose stack was read, or else of the process, if it cannot run in
// it: the stack is the later look.
func (v view) state(rank int) job.ProcessState {
	if g := v.of[rank]; g != nil && g.State != "" {
		return fixed(g.State)
	}
	return fixed(v.pulses[rank].State)
}

// halted says of each state in which a process can do nothing by itself what it is, in the order of
// how sure it is that it explains a hang. A process in an uninterruptible sleep may just wait for a
// slow disk, and one whose main thread has ended may have other threads that work.
var halted = []struct {
	state      job.ProcessState
	words      string
	confidence float64
}{
	{job.ProcessStopped, "stopped by a signal", 0.97},
	{job.ProcessTraced, "stopped by a debugger", 0.97},
	{job.ProcessZombie, "without a main thread, which has ended", 0.9},
	{job.ProcessDisk, "hanging in the kernel, where no signal arrives", 0.9},
}

// Halted names the ranks that can do nothing by themselves, each with its state, such as stopped.
func Halted(states map[int]job.ProcessState) string {
	var all []string
	for _, h := range halted {
		var ranks []int
		for r, state := range states {
			if state == h.state {
				ranks = append(ranks, r)
			}
		}
		if slices.Sort(ranks); len(ranks) > 0 {
			all = append(all, named(ranks)+are(ranks)+h.words)
		}
	}
	return text.And(all)
}

// cannotRun finds ranks that cannot run at all. Nothing but that is needed to explain a hang. It says
// little if no rank can run: then the cause is outside of them.
func (v view) cannotRun() Suspect {
	for _, h := range halted {
		ranks := v.where(func(r int) bool { return v.state(r) == h.state })
		if len(ranks) == 0 {
			continue
		}
		s := Suspect{Ranks: ranks, Why: named(ranks) + are(ranks) + h.words, Confidence: h.confidence}
		if g := v.of[ranks[0]]; h.state == job.ProcessDisk && g != nil && len(ranks) == len(g.Ranks) && g.Where != "" {
			s.Why += ": " + g.Where
		}
		if 2*len(ranks) > len(v.ranks) { // it is what most ranks have in common
			s.Confidence /= 2
		}
		if len(ranks) == len(v.ranks) {
			s.Ranks, s.Confidence = nil, 0
		}
		return s
	}
	return Suspect{}
}

// waits reports whether a rank waits for other ranks, and whether that is known. The phase of the rank
// in its MPI library or its stack says so. If some rank is at a meeting point of MPI, one that is not
// there is expected there.
func (v view) waits(rank int) (waits, known bool) {
	phase := v.pulses[rank].Phase
	if meets(phase) || phase == job.PhaseLeft { // after MPI_Finalize, it holds up nobody
		return true, true
	}
	if g := v.of[rank]; g != nil && len(g.Frames) > 0 {
		return g.Collective, true
	}
	return false, v.meeting
}

func meets(phase job.RankPhase) bool {
	return phase == job.PhaseInit || phase == job.PhaseBarrier
}

// outside finds the ranks that are not in a call for other ranks while the rest wait in one. It is the
// usual picture of a hang. It is less sure if the others wait in different calls, and if most ranks are outside:
// then some of those outside may only be on their way.
func (v view) outside() Suspect {
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
		return Suspect{}
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
		Why: fmt.Sprintf("%s, while %s for other ranks%s", v.places(out), waitFor(waiting), v.inCalls(waiting))}
}

func waitFor(ranks []int) string { return named(ranks) + choose(ranks, " waits", " wait") }

func (v view) inCalls(ranks []int) string {
	if calls := v.calls(ranks); len(calls) == 1 && calls[0] != "" {
		return " in " + calls[0]
	}
	return ""
}

// places says where ranks are, if they are in the same group.
func (v view) places(ranks []int) string {
	g, phase := v.of[ranks[0]], v.pulses[ranks[0]].Phase
	switch {
	case g != nil && !slices.ContainsFunc(ranks, func(r int) bool { return v.of[r] != g }):
		return named(ranks) + are(ranks) + in(*g)
	case v.meeting && !slices.ContainsFunc(ranks, func(r int) bool { return v.pulses[r].Phase != phase }):
		if phase == job.PhaseUnknown {
			return named(ranks) + choose(ranks, " has", " have") + " not called MPI_Init"
		}
		return named(ranks) + are(ranks) + "not in MPI_Finalize"
	}
	return named(ranks) + are(ranks) + "elsewhere"
}

// choose returns the form of a word for one rank, or for several.
func choose(ranks []int, one, several string) string {
	if len(ranks) == 1 {
		return one
	}
	return several
}

func are(ranks []int) string { return choose(ranks, " is ", " are ") }

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
func (v view) mismatch() Suspect {
	by := map[string][]int{}
	for _, r := range v.ranks {
		call := v.call(r)
		if call == "" {
			return Suspect{}
		}
		by[call] = append(by[call], r)
	}
	if len(by) < 2 {
		return Suspect{}
	}
	most := ""
	for call, ranks := range by {
		if len(ranks) > len(by[most]) {
			most = call
		}
	}
	if 2*len(by[most]) <= len(v.ranks) || v.scattered(by[most]) {
		return Suspect{Why: "ranks wait for each other in different calls: " + some(v.groups), Confidence: 0.5}
	}
	others := v.where(func(r int) bool { return v.call(r) != most })
	confidence := 0.6
	if 4*len(others) <= len(v.ranks) {
		confidence = 0.8
	}
	return Suspect{Ranks: others, Confidence: confidence,
		Why: fmt.Sprintf("%s, while %s in %s", v.places(others), waitFor(by[most]), most)}
}

// finalizing finds the ranks that are in MPI_Finalize, if all others wait in other calls: those that finalize will
// never make these calls. If most ranks are in MPI_Finalize, the others hold them up.
func (v view) finalizing() Suspect {
	var ends, others []int
	for _, r := range v.ranks {
		switch v.call(r) {
		case "":
			return Suspect{}
		case "MPI_Finalize":
			ends = append(ends, r)
		default:
			others = append(others, r)
		}
	}
	if len(ends) == 0 || len(ends) > len(others) {
		return Suspect{}
	}
	return Suspect{Ranks: ends, Confidence: 0.85, Why: fmt.Sprintf("%s, while %s for other ranks%s", v.places(ends), waitFor(others), v.inCalls(others))}
}

// scattered reports whether ranks are at several places.
func (v view) scattered(ranks []int) bool {
	return slices.ContainsFunc(ranks, func(r int) bool { return v.of[r] != v.of[ranks[0]] })
}

// late returns the ranks whose last reported step is before the median of the ranks that report any,
// and that median. There are none if half of the ranks report no steps, or if the late
// ones are not few.
func (v view) late() (ranks []int, median int64) {
	var all []int64
	step := func(r int) int64 {
		if p := v.pulses[r].Progress; p != nil {
			return p.At()
		}
		return -1
	}
	for _, r := range v.ranks {
		if s := step(r); s >= 0 {
			all = append(all, s)
		}
	}
	if 2*len(all) <= len(v.ranks) {
		return nil, 0
	}
	slices.Sort(all)
	median = all[len(all)/2]
	ranks = v.where(func(r int) bool { s := step(r); return s >= 0 && s < median })
	if !v.few(ranks) {
		return nil, 0
	}
	return ranks, median
}

// behind finds ranks at an earlier step than most. If not all ranks report steps, the output of some
// may only have been delayed.
func (v view) behind() Suspect {
	ranks, step := v.late()
	if len(ranks) == 0 {
		return Suspect{}
	}
	confidence := 0.6
	if !slices.ContainsFunc(v.ranks, func(r int) bool { return v.pulses[r].Progress == nil }) {
		confidence = 0.8
	}
	return Suspect{Ranks: ranks, Confidence: confidence,
		Why: fmt.Sprintf("%s%s not reached step %d, which most ranks have", named(ranks), choose(ranks, " has", " have"), step)}
}

// offNetwork finds the ranks that do not wait for data on a socket, where most do: the data may have to
// come from one of the few.
func (v view) offNetwork() Suspect {
	waits := func(r int) bool { g := v.of[r]; return g != nil && (g.Network || g.Collective) }
	on, off := v.where(waits), v.where(func(r int) bool { return v.of[r] != nil && !waits(r) })
	if len(off) == 0 || 2*len(on) <= len(v.ranks) {
		return Suspect{}
	}
	confidence := 0.7
	if late, _ := v.late(); slices.Equal(late, off) {
		confidence = 0.85
	}
	return Suspect{Ranks: off, Confidence: confidence, Why: fmt.Sprintf("%s, while %s %s", v.places(off), waitFor(on), v.onWhat(on))}
}

// onWhat says what ranks wait for that wait in a communication call or on a socket.
func (v view) onWhat(ranks []int) string {
	if slices.ContainsFunc(ranks, func(r int) bool { return !v.of[r].Collective }) {
		return "on the network"
	}
	return "for other ranks" + v.inCalls(ranks)
}

// unlike finds the few ranks that sleep while all others use CPU time, or the other way round.
func (v view) unlike() Suspect {
	busy := v.where(func(r int) bool { return v.pulses[r].Busy })
	asleep := v.where(func(r int) bool { return v.pulses[r].Asleep })
	switch {
	case len(busy)+len(asleep) < len(v.ranks):
	case v.few(asleep):
		return Suspect{Ranks: asleep, Confidence: 0.6, Why: named(asleep) + choose(asleep, " sleeps", " sleep") + ", while the others use CPU time"}
	case v.few(busy):
		return Suspect{Ranks: busy, Confidence: 0.6, Why: named(busy) + choose(busy, " uses", " use") + " CPU time, while the others sleep"}
	}
	return Suspect{}
}

// elsewhere finds the few ranks that are not where most are. This is all that can be said if either
// none of the ranks or all of them are in calls of a communication library that is known by its names.
func (v view) elsewhere() Suspect {
	inside := func(g job.StackGroup) bool { return g.Collective }
	outside := func(g job.StackGroup) bool { return !g.Collective }
	if slices.ContainsFunc(v.groups, inside) && slices.ContainsFunc(v.groups, outside) || len(v.groups) < 2 || len(v.groups[0].Ranks)*2 <= len(v.ranks) || v.groups[0].Where == "" {
		return Suspect{}
	}
	most := &v.groups[0]
	ranks := v.where(func(r int) bool {
		g := v.of[r]
		return g != nil && g != most && g.Where != "" && (len(g.Frames) > 0 || len(most.Frames) == 0)
	})
	if len(ranks) == 0 {
		return Suspect{}
	}
	confidence := 0.4
	if 4*len(ranks) <= len(v.ranks) {
		confidence = 0.55
	}
	return Suspect{Ranks: ranks, Confidence: confidence, Why: v.places(ranks) + ", while most ranks are " + in(*most)}
}
