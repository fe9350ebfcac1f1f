package watch

import (
	"slices"

	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// recorded is the confidence in ranks of which the records of all ranks show that they have not called a collective in
// which others wait, or have called another one.
const recorded = 0.97

// about returns the first collective that ranks are missing from, or differ in.
func about(problems []job.CollectiveProblem, ranks []int) job.CollectiveProblem {
	return problems[slices.IndexFunc(problems, func(p job.CollectiveProblem) bool {
		return slices.ContainsFunc(slices.Concat(p.Missing, p.Differing), func(r int) bool { return slices.Contains(ranks, r) })
	})]
}

// Blame completes the report of a hang: it adds what the stacks and the flight recorders of the ranks show, and
// the text of the report.
func (w *Watch) Blame(h job.HangReport, stacks []job.RankStack) job.HangReport {
	stacks = w.settled(stacks)
	h.Groups = stacktree.Groups(stacks)
	if odd := stacktree.Odd(h.Groups, w.pulses()); odd.Confidence >= h.Confidence {
		h.Ranks, h.Why, h.Confidence = odd.Ranks, odd.Why, odd.Confidence
	}
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
	h.Text = Words(h, w.arrived)
	switch {
	case h.Why != "":
		h.Text += "; " + h.Why
	case len(h.Groups) > 0:
		h.Text += "; " + stacktree.Text(h.Groups)
	}
	return h
}

// pulses returns what the pulses of the ranks that have not ended say.
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

// settled returns the stacks, in which a rank hangs in the kernel only if its pulses have found it
// there for some time. A rank that writes to a disk is there again and again, for moments.
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
