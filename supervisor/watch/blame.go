package watch

import (
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// Blame completes the report of a hang with what the stacks of the ranks show, and with its text.
func (w *Watch) Blame(h job.HangReport, stacks []job.RankStack) job.HangReport {
	h.Groups = stacktree.Groups(stacks)
	if odd := stacktree.Odd(h.Groups, w.pulses()); odd.Confidence >= h.Confidence {
		h.Ranks, h.Why, h.Confidence = odd.Ranks, odd.Why, odd.Confidence
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

// pulses returns the last pulses of the ranks that have not ended.
func (w *Watch) pulses() (all []job.Pulse) {
	for _, number := range w.living() {
		all = append(all, w.ranks[number].last)
	}
	return all
}
