package progress

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/saves"
)

const (
	maxHistory = 512                   // steps of a rank that are remembered
	finest     = 20 * time.Millisecond // between two of them
)

// history has the newest steps of a rank, oldest first.
type history []saves.Step

// add adds a step. One that follows others closely replaces the last one.
func (h *history) add(now time.Time, count int64) {
	s := saves.Step{Time: now, Count: count}
	if n := len(*h); n > 1 && now.Sub((*h)[n-2].Time) < finest {
		(*h)[n-1] = s
		return
	}
	if len(*h) == 2*maxHistory { // so that few are moved
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
