package stacktree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// state returns a state of the rank in which it cannot run, or "". It takes the state of the thread whose stack
// was read, because the stack is newer than the pulse. Without a stack, it takes the state of the process.
func (v view) state(rank int) job.ProcessState {
	if g := v.of[rank]; g != nil && g.State != "" {
		return fixed(g.State)
	}
	return fixed(v.pulses[rank].State)
}

// halted has the states in which a process can do nothing by itself, in the order of how certainly they explain
// a hang. A process in an uninterruptible sleep may just wait for a slow disk. A process whose main thread has
// ended may have other threads that work.
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

// Halted names the ranks that can do nothing by themselves, each with its state, such as "stopped".
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

// cannotRun finds ranks that cannot run. This alone explains a hang. It explains little if no rank can run,
// because the reason is then outside of the ranks.
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
		if 2*len(ranks) > len(v.ranks) { // most ranks have this state in common
			s.Confidence /= 2
		}
		if len(ranks) == len(v.ranks) {
			s.Ranks, s.Confidence = nil, 0
		}
		return s
	}
	return Suspect{}
}

// waits reports whether a rank waits for other ranks, and whether this is known. The stack of the rank or its
// phase in the MPI library shows it. If some rank is at a meeting point of MPI, the ranks that are not there
// are expected there.
func (v view) waits(rank int) (waits, known bool) {
	phase := v.pulses[rank].Phase
	if meets(phase) || phase == job.PhaseLeft { // after MPI_Finalize, a rank holds up nobody
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

// outside finds the ranks that are not in a communication call while the others wait in one. This is the usual
// picture of a hang. It is less certain if the others wait in different calls. It is also less certain if most
// ranks are outside, because some of these may only be on their way to the call.
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
		confidence = 0.95 // two independent signs
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

// places says where ranks are, if they are all in the same group.
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

// choose returns one for a single rank, and several for several ranks.
func choose(ranks []int, one, several string) string {
	if len(ranks) == 1 {
		return one
	}
	return several
}

func are(ranks []int) string { return choose(ranks, " is ", " are ") }

// call returns the name of the communication call in which a rank waits, or "".
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

// mismatch finds ranks that wait in another call than most ranks, if all ranks wait in a call. This is not very
// certain: a program may let some ranks receive what others send, and the ranks of different groups may be in
// different collectives. mismatch names no ranks if no call has the majority, or if the ranks in the majority's
// call are at several places, because a library may use one call for the parts of another.
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

// finalizing finds the ranks that are in MPI_Finalize, if all others wait in other calls. The ranks in
// MPI_Finalize will never make these calls. If most ranks are in MPI_Finalize, finalizing returns the others,
// which hold up these ranks.
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

// scattered reports whether ranks are in different groups.
func (v view) scattered(ranks []int) bool {
	return slices.ContainsFunc(ranks, func(r int) bool { return v.of[r] != v.of[ranks[0]] })
}

// late returns the ranks whose last reported step is before the median of all reported steps, and this median.
// It returns no ranks if half of the ranks report no steps, or if the late ranks are not few.
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

// behind finds ranks at an earlier step than most. This is less certain if not all ranks report steps, because
// the output of some ranks may only be delayed.
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

// offNetwork finds the ranks that do not wait for data on a socket, if most ranks do. The others may wait for
// data from these ranks.
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

// onWhat says for what ranks wait that are in a communication call or wait for a socket.
func (v view) onWhat(ranks []int) string {
	if slices.ContainsFunc(ranks, func(r int) bool { return !v.of[r].Collective }) {
		return "on the network"
	}
	return "for other ranks" + v.inCalls(ranks)
}

// unlike finds the few ranks that sleep while all others use CPU time, or the few ranks that use CPU time while
// all others sleep.
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

// elsewhere finds the few ranks that are not where most ranks are. It applies if all ranks are in known
// communication calls, or if none is. Nothing better is then known.
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
