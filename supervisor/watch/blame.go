package watch

import "github.com/gangrun/gangrun/internal/job"

// Blame completes the report of a hang with what the stacks of the ranks show, and with its text.
func (w *Watch) Blame(h job.HangReport, stacks []job.RankStack) job.HangReport {
	h.Text = Words(h, w.arrived)
	if len(h.Ranks) > 0 {
		h.Text += "; " + h.Why
	}
	return h
}

// GroupWords says where a group of ranks is.
func GroupWords(g job.StackGroup) string { return who(g.Ranks) + " in " + g.Where }
