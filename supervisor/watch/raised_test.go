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

// raised lets a rank of a gang print an exception.
func raised(p *job.Pulse) { p.Raised, p.Output = true, p.Output+400 }

// TestCaught: a rank prints an exception that its program has caught, and the gang goes on. gangrun looks at it more and more
// rarely. It still finds the hang after a second exception.
func TestCaught(t *testing.T) {
	g := newGang(3)
	g.watch.timeout = 10 * 60 * 1e9
	g.until(20, steps)
	g.second(but(steps, raised, 1))
	silently := but(steps, func(p *job.Pulse) { works(p); p.Moves++ }, 1)
	looks := 0
	goes := []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "work"), inCall(2, "MPI_Barrier")}
	if h, n := g.judged(3600, silently, func() []job.RankStack { looks++; return goes }); h != nil || looks == 0 || looks > 14 {
		t.Errorf("after %d s: %+v; %d looks in an hour, want 1 to 14", n, h, looks)
	}
	g.second(but(silently, raised, 1))
	ends := []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "MPI_Finalize"), inCall(2, "MPI_Barrier")}
	if h, n := g.judged(60, but(works, sleeps, 1), func() []job.RankStack { return ends }); h == nil || n > 30 || !slices.Equal(h.Raised, []int{1}) {
		t.Errorf("after %d s: %+v, want a hang of rank 1", n, h)
	}
}

// TestCaughtAndSlow: a rank has printed an exception that its program has caught. This is no reason to judge the stacks while
// another rank writes a checkpoint, or to blame the exception for a hang that comes long after it.
func TestCaughtAndSlow(t *testing.T) {
	g := newGang(4)
	g.until(20, steps)
	g.second(but(steps, raised, 3))
	g.until(20, but(steps, func(p *job.Pulse) { works(p); p.Moves++ }, 3))
	saves := but(works, func(p *job.Pulse) { sleeps(p); p.Written += 8 << 20 }, 0)
	stacks := []job.RankStack{inCall(0, "write"), inCall(1, "MPI_Barrier"), inCall(2, "MPI_Barrier"), inCall(3, "MPI_Barrier")}
	if h, n := g.judged(55, saves, func() []job.RankStack { return stacks }); h != nil {
		t.Fatalf("after %d s: %+v", n, h)
	}
	g.until(20, but(steps, func(p *job.Pulse) { works(p); p.Moves++ }, 3))
	h, _ := g.until(300, but(works, stops, 3))
	if h == nil {
		t.Fatal("no hang was found")
	}
	if b := g.watch.Blame(*h, stacks); len(b.Raised) > 0 || !slices.Equal(b.Ranks, []int{3}) {
		t.Errorf("blamed are %v, because of the exceptions of %v; want rank 3, and none", b.Ranks, b.Raised)
	}
}
