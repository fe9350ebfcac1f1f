package supervisor

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/retry"
)

// history returns the attempts of the earlier starts of a batch job, oldest first. legs has the
// events of each start's run.
func (s *Supervisor) history(legs [][]job.Event) (all []retry.Past) {
	for _, events := range legs {
		leg := &loop{Supervisor: s}
		for _, e := range events {
			if e.Kind == job.KindCreated && e.Spec != nil {
				leg.spec = *e.Spec
			}
			leg.folder.Add(e)
		}
		leg.restore(events)
		all = append(all, leg.past...)
	}
	return all
}

// before returns the attempts before the next one: those of earlier starts of the batch job, and
// those of this run.
func (l *loop) before() []retry.Past { return slices.Concat(l.earlier, l.past) }
