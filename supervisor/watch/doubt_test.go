package watch

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// judged lets up to limit seconds pass. It judges the stacks that look returns whenever the Watch asks for
// stacks.
func (g *gangOf) judged(limit int, does func(*job.Pulse), look func() []job.RankStack) (*job.HangReport, int) {
	for n := range limit {
		g.second(does)
		if g.watch.Doubtful() {
			if h := g.watch.Judge(look()); h != nil {
				return h, n + 1
			}
		}
	}
	return nil, limit
}

// TestJudge: a rank of a job without steps does not take part in a barrier.
func TestJudge(t *testing.T) {
	stacks := []job.RankStack{inCall(0, "wait4"), inCall(1, "MPI_Barrier"), inCall(2, "MPI_Barrier"), inCall(3, "MPI_Barrier")}
	for _, c := range []struct {
		name  string
		does  func(*job.Pulse)
		least int // seconds; 0 if it is no hang
	}{
		{"it sleeps", but(works, sleeps, 0), 10},
		{"its child compiles", works, 60},
		{"its child compiles, and needs memory", but(works, func(p *job.Pulse) { works(p); grows(p) }, 0), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, n := newGang(4).judged(300, c.does, func() []job.RankStack { return stacks })
			switch {
			case c.least == 0 && h != nil:
				t.Errorf("it hangs after %d s: %+v", n, h)
			case c.least > 0 && (h == nil || !slices.Equal(h.Ranks, []int{0}) || n < c.least || n > 2*c.least):
				t.Errorf("after %d s: %+v, want rank 0 after %d s", n, h, c.least)
			}
		})
	}
}

// TestJudgeChildren: a rank that starts one program after another does not hang, because these programs
// compute.
func TestJudgeChildren(t *testing.T) {
	pid := 1000
	look := func() []job.RankStack {
		pid++
		first := inCall(0, "wait4")
		first.Threads = append(first.Threads, job.ThreadStack{PID: pid, TID: pid, Name: "cc1", State: job.ProcessRunning})
		return []job.RankStack{first, inCall(1, "MPI_Barrier"), inCall(2, "MPI_Barrier"), inCall(3, "MPI_Barrier")}
	}
	if h, n := newGang(4).judged(300, works, look); h != nil {
		t.Errorf("it hangs after %d s: %+v", n, h)
	}
}
