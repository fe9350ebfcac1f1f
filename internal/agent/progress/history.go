package progress

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/saves"
)

const (
	maxHistory = 512                   // at least so many of the newest steps of a rank are kept, and at most twice as many
	finest     = 20 * time.Millisecond // shortest time between two remembered steps
)

// history has the newest steps of a rank, the oldest of them first.
type history []saves.Step

// add adds a step. If the steps before it are very close in time, it replaces the last one.
func (h *history) add(now time.Time, count int64) {
	s := saves.Step{Time: now, Count: count}
	if n := len(*h); n > 1 && now.Sub((*h)[n-2].Time) < finest {
		(*h)[n-1] = s
		return
	}
	if len(*h) == 2*maxHistory { // so that steps are moved rarely
		*h = slices.Delete(*h, 0, maxHistory)
	}
	*h = append(*h, s)
}

// History returns the latest steps that the rank has reported, each with the time of its report, in the order of
// the reports.
func (p *Rank) History() []saves.Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone([]saves.Step(p.signs.history))
}
