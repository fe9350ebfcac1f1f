package launcher

import (
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/lifecycle"
)

// TestEndAfterCancel checks that a rank has not failed if it ended after the run was cancelled, because of the end of
// another rank. A rank that failed before the cancellation has failed.
func TestEndAfterCancel(t *testing.T) {
	at := time.Now()
	e := newEmitter(func(job.Event) {})
	defer e.close()
	g := &running{
		attempt: job.Attempt{Placement: job.Placement{Ranks: make([]job.Rank, 2)}}, emitter: e,
		tally: tally{seen: map[int]bool{}}, wiring: newWiring(job.MPINone, false, nil), phase: lifecycle.Ending, end: end{cancelled: at},
	}
	g.exit(job.Exit{Rank: 0, Status: job.Exited, Code: 15, Aborted: true, Time: at.Add(time.Millisecond)})
	g.exit(job.Exit{Rank: 1, Status: job.Exited, Code: 1, Time: at.Add(-time.Millisecond)})
	if exits := g.outcome.Exits; !exits[0].Stopped || exits[1].Stopped {
		t.Errorf("got %+v, want the first one stopped and the second one not", exits)
	}
}
