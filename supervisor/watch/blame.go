package watch

import (
	"slices"

	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// recorded is the confidence in a suspicion that rests on the records of all ranks. The records show that the
// suspected ranks have not called a collective in which others wait, or have called another one.
const recorded = 0.97

// lastLiving is the confidence that a rank holds up the gang if it is the only rank that has not ended.
const lastLiving = 0.97

// about returns the first problem with a collective in which one of the ranks is missing or differs.
func about(problems []job.CollectiveProblem, ranks []int) job.CollectiveProblem {
	return problems[slices.IndexFunc(problems, func(p job.CollectiveProblem) bool {
		return slices.ContainsFunc(slices.Concat(p.Missing, p.Differing), func(r int) bool { return slices.Contains(ranks, r) })
	})]
}

// Blame completes the report of a hang: it adds what the stacks and the flight recorders of the ranks show, and
// the text of the report. looks has the stacks of each time at which they were read, the latest last.
func (w *Watch) Blame(h job.HangReport, looks ...[]job.RankStack) job.HangReport {
	for i := range looks {
		looks[i] = w.settled(looks[i])
	}
	stacks := Latest(looks)
	h.Groups = stacktree.Groups(looks...)
	if odd := stacktree.Odd(h.Groups, w.pulses()); odd.Confidence >= h.Confidence || len(odd.Ranks) > 0 && slices.Equal(odd.Ranks, h.Ranks) {
		h.Ranks, h.Why, h.Confidence = odd.Ranks, odd.Why, max(odd.Confidence, h.Confidence)
	}
	w.withEnded(&h)
	var records []job.FlightRecord
	for _, s := range stacks {
		if s.Record != nil {
			records = append(records, *s.Record)
		}
		if s.Python && !s.ReadPython() {
			h.Unread = append(h.Unread, s.Rank)
		}
	}
	var blamed []int
	if h.Collectives, blamed = flightrecord.Analyse(records); len(blamed) > 0 && h.Confidence < recorded {
		h.Ranks, h.Why, h.Confidence = blamed, flightrecord.Words(about(h.Collectives, blamed)), recorded
	}
	h.Raised = w.raisedLast()
	h.Text = Words(h, w.arrived)
	switch {
	case h.Why != "":
		h.Text += "; " + h.Why
	case len(h.Groups) > 0:
		h.Text += "; " + stacktree.Text(h.Groups)
	}
	if child := stacktree.Children(stacks, h.Ranks); child != "" {
		h.Text += "; " + child
	}
	return h
}

// leftEarly is the confidence that ranks that have ended hold up the others, if all others wait for other
// ranks.
const leftEarly = 0.7

// withEnded adds to a report which ranks have ended. If all other ranks wait for other ranks, the report says
// that the ranks that have ended hold them up.
func (w *Watch) withEnded(h *job.HangReport) {
	var ended []int
	for number, r := range w.ranks {
		if r.ended {
			ended = append(ended, number)
		}
	}
	if len(ended) == 0 || len(h.Groups) == 0 {
		return
	}
	slices.Sort(ended)
	waits := func(g job.StackGroup) bool { return g.Collective || g.Network }
	if len(h.Ranks) == 0 && !slices.ContainsFunc(h.Groups, func(g job.StackGroup) bool { return !waits(g) }) {
		h.Ranks, h.Confidence = ended, max(h.Confidence, leftEarly)
		h.Why = stacktree.LeftWaiting(ended, h.Groups)
		return
	}
	if living := w.living(); len(living) == 1 {
		h.Ranks, h.Confidence = living, max(h.Confidence, lastLiving)
	}
	h.Why += "; " + stacktree.Left(ended)
}

// pulses returns what the last pulses show of each rank that has not ended.
func (w *Watch) pulses() (all []stacktree.Rank) {
	for _, number := range w.living() {
		r := w.ranks[number]
		p := stacktree.Rank{Pulse: r.last, Busy: w.busy(r), Asleep: w.asleep(r)}
		if p.State == job.ProcessDisk && w.clock-r.stateFor < w.timeout/2 {
			p.State = job.ProcessSleeping
		}
		all = append(all, p)
	}
	return all
}

// settled returns a copy of stacks. In it, a rank hangs in the kernel only if its pulses have found it there
// for some time, because a rank that writes to a disk is in the kernel for short moments.
func (w *Watch) settled(stacks []job.RankStack) []job.RankStack {
	stacks = slices.Clone(stacks)
	for i, s := range stacks {
		r := w.ranks[s.Rank]
		if r != nil && r.state == job.ProcessDisk && w.clock-r.stateFor >= w.timeout/2 {
			continue
		}
		stacks[i].Threads = slices.Clone(s.Threads)
		for j := range stacks[i].Threads {
			if t := &stacks[i].Threads[j]; t.State == job.ProcessDisk {
				t.State = job.ProcessSleeping
			}
		}
	}
	return stacks
}
