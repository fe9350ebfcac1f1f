package watch

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestRaised: a rank has printed an exception, and waits in MPI_Finalize.
func TestRaised(t *testing.T) {
	raises := but(works, func(p *job.Pulse) { sleeps(p); p.Raised = true }, 1)
	for name, c := range map[string]struct {
		does   func(*job.Pulse)
		stacks []job.RankStack
		want   bool
	}{
		"the others wait":          {raises, []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "MPI_Finalize"), inCall(2, "MPI_Recv")}, true},
		"a rank computes":          {raises, []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "MPI_Finalize"), inCall(2, "work")}, false},
		"all are at their end":     {raises, []job.RankStack{inCall(0, "MPI_Finalize"), inCall(1, "MPI_Finalize"), inCall(2, "MPI_Finalize")}, false},
		"it goes on":               {raises, []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "work"), inCall(2, "MPI_Barrier")}, false},
		"it has raised none":       {works, []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "MPI_Finalize"), inCall(2, "MPI_Barrier")}, false},
		"another rank is finished": {raises, []job.RankStack{inCall(0, "MPI_Finalize"), inCall(1, "work"), inCall(2, "MPI_Barrier")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGang(3)
			g.watch.timeout = 10 * 60 * 1e9 // only the exception is a reason to look
			h, n := g.judged(60, c.does, func() []job.RankStack { return c.stacks })
			if c.want != (h != nil) || h != nil && (!slices.Equal(h.Ranks, []int{1}) || !slices.Equal(h.Raised, []int{1}) || n > 30) {
				t.Errorf("after %d s: %+v, want a hang: %v", n, h, c.want)
			}
		})
	}
}
