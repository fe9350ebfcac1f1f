package watch

import (
	"maps"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// Blame completes the report of a hang with what the stacks of the ranks show, and with its text.
func (w *Watch) Blame(h job.HangReport, stacks []job.RankStack) job.HangReport {
	h.Groups = stacktree.Groups(stacks)
	var pulses []job.Pulse
	for _, number := range slices.Sorted(maps.Keys(w.ranks)) {
		if r := w.ranks[number]; !r.ended {
			pulses = append(pulses, r.last)
		}
	}
	if odd := stacktree.Odd(h.Groups, pulses); odd.Confidence >= h.Confidence {
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
