package watch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// at returns the stack of a rank whose main thread is in a function.
func at(rank int, function string) job.RankStack {
	frames := []job.Frame{{Function: function, File: "/home/u/train.py", Line: 10}}
	return job.RankStack{Rank: rank, Tool: job.StackPySpy, Python: true, Threads: []job.ThreadStack{{PID: 100 + rank, TID: 100 + rank, Main: true, State: job.ProcessSleeping, Frames: frames}}}
}

// recordOf returns the record of a rank of four. The rank has called the collectives up to a sequence number,
// and the last of them is not complete.
func recordOf(rank int, last int64) *job.FlightRecord {
	r := job.FlightRecord{Rank: rank, Groups: map[string]job.ProcessGroup{"0": {Desc: "default_pg", Ranks: []int{0, 1, 2, 3}}}}
	for seq := int64(5); seq <= last; seq++ {
		c := job.CollectiveCall{Group: "0", Seq: seq, Op: "nccl:all_reduce", State: "completed"}
		if seq == 7 {
			c.State = "started"
		}
		r.Calls = append(r.Calls, c)
	}
	return &r
}

// TestBlameFlightRecords: the records of flight recorders count more than stacks. If no rank is missing in
// them, they decide nothing.
func TestBlameFlightRecords(t *testing.T) {
	for _, c := range []struct {
		name        string
		stacks      func() []job.RankStack
		ranks       []int
		why         string
		collectives int
	}{
		{"a rank is missing", func() (all []job.RankStack) {
			for r := range 4 {
				s := at(r, "step")
				if s.Record = recordOf(r, 7); r == 2 {
					s.Record = recordOf(r, 6)
				}
				all = append(all, s)
			}
			return all
		}, []int{2}, "nccl:all_reduce 7 of default_pg: rank 2 has not called it and ranks 0-1,3 wait", 1},
		{"the stacks name another rank", func() (all []job.RankStack) {
			for r := range 4 {
				s := at(r, "step")
				if r == 0 {
					s = at(r, "log")
				}
				if s.Record = recordOf(r, 7); r == 2 {
					s.Record = recordOf(r, 6)
				}
				all = append(all, s)
			}
			return all
		}, []int{2}, "rank 2 has not called it", 1},
		{"a rank has no record", func() (all []job.RankStack) {
			for r := range 4 {
				s := at(r, "step")
				if r != 2 {
					s.Record = recordOf(r, 7)
				}
				all = append(all, s)
			}
			return all
		}, nil, "", 1},
		{"all wait", func() (all []job.RankStack) {
			for r := range 4 {
				s := at(r, "step")
				s.Record = recordOf(r, 7)
				all = append(all, s)
			}
			return all
		}, nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGang(4)
			g.until(20, steps)
			h, _ := g.until(100, works)
			if h == nil {
				t.Fatal("no hang")
			}
			got := g.watch.Blame(*h, c.stacks())
			if !slices.Equal(got.Ranks, c.ranks) || !strings.Contains(got.Why, c.why) || !strings.Contains(got.Text, c.why) || len(got.Collectives) != c.collectives || got.Unread != nil {
				t.Errorf("got %+v, want the ranks %v and %q", got, c.ranks, c.why)
			}
		})
	}
}

// TestUnread has ranks that are Python programs, of whose stacks only the C functions could be read.
func TestUnread(t *testing.T) {
	g := newGang(3)
	g.until(20, steps)
	h, _ := g.until(100, works)
	stacks := []job.RankStack{at(0, "step"), at(1, "step"), at(2, "step")}
	stacks[1].Tool = job.StackGDB
	stacks[2].Tool, stacks[2].Python = job.StackGDB, false
	if got := g.watch.Blame(*h, stacks); !slices.Equal(got.Unread, []int{1}) {
		t.Errorf("got %v, want rank 1", got.Unread)
	}
}

// inCall returns the stack of a rank that waits in a call of MPI, or that is elsewhere.
func inCall(rank int, function string) job.RankStack {
	s := at(rank, function)
	s.Python = false
	s.Threads[0].Frames = []job.Frame{{Function: function, File: "/usr/lib/libmpich.so.12", Native: true}, {Function: "main", File: "/home/u/a.c", Line: 20, Native: true}}
	return s
}

// TestBlameEnded: a rank that has ended holds up the ranks that all wait for others. If only one rank is left,
// it holds up the end.
func TestBlameEnded(t *testing.T) {
	for _, c := range []struct {
		name   string
		ended  []int
		stacks []job.RankStack
		ranks  []int
		why    string
	}{
		{"the others wait", []int{2}, []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "MPI_Barrier"), inCall(3, "MPI_Barrier")},
			[]int{2}, "rank 2 has ended, while ranks 0-1,3 wait in MPI_Barrier (a.c:20 main)"},
		{"one of the others does not wait", []int{2}, []job.RankStack{inCall(0, "MPI_Barrier"), inCall(1, "read"), inCall(3, "MPI_Barrier")},
			[]int{1}, "rank 1 is in read (a.c:20 main), while ranks 0,3 wait for other ranks in MPI_Barrier; rank 2 has ended"},
		{"one is left", []int{0, 1, 3}, []job.RankStack{inCall(2, "read")}, []int{2}, "rank 2 is in read (a.c:20 main); ranks 0-1,3 have ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGang(4)
			g.until(20, steps)
			for _, rank := range c.ended {
				g.watch.Exit(rank)
			}
			h, _ := g.until(100, sleeps)
			if h == nil {
				t.Fatal("no hang")
			}
			if got := g.watch.Blame(*h, c.stacks); !slices.Equal(got.Ranks, c.ranks) || got.Why != c.why {
				t.Errorf("got %v and %q, want %v and %q", got.Ranks, got.Why, c.ranks, c.why)
			}
		})
	}
}

// TestBlameSurest: the pulses show which rank is not in MPI_Finalize, and the stack of this rank shows where it
// is.
func TestBlameSurest(t *testing.T) {
	g := newGang(4)
	g.until(20, steps)
	for i := range g.ranks {
		if g.ranks[i].Phase = job.PhaseBarrier; i == 1 {
			g.ranks[i].Phase = job.PhaseWorking
		}
	}
	h, _ := g.until(100, works)
	if h == nil || !slices.Equal(h.Ranks, []int{1}) {
		t.Fatalf("got %+v", h)
	}
	got := g.watch.Blame(*h, []job.RankStack{inCall(0, "MPI_Finalize"), inCall(1, "MPI_Waitall"), inCall(2, "MPI_Finalize"), inCall(3, "MPI_Finalize")})
	if got.Why != "rank 1 is in MPI_Waitall (a.c:20 main), while ranks 0,2-3 wait in MPI_Finalize" || got.Confidence < h.Confidence {
		t.Errorf("got %+v", got)
	}
}

// TestMoving: for ranks that sleep, one look is enough.
func TestMoving(t *testing.T) {
	g := newGang(2)
	g.until(20, steps)
	g.until(15, sleeps)
	if g.watch.Moving() {
		t.Error("all ranks sleep, and move")
	}
	g = newGang(2)
	g.until(20, steps)
	g.until(15, but(sleeps, works, 1))
	if !g.watch.Moving() {
		t.Error("a rank computes, and none moves")
	}
}

// TestLooks: additional looks at ranks that move are short. They end when a look is not complete.
func TestLooks(t *testing.T) {
	all, part := []job.RankStack{at(0, "a"), at(1, "b")}, []job.RankStack{at(0, "a"), {Rank: 1}}
	for _, c := range []struct {
		name   string
		moving bool
		reads  [][]job.RankStack
		want   int
	}{
		{"asleep", false, [][]job.RankStack{all}, 1},
		{"moving", true, [][]job.RankStack{all, all, all}, 3},
		{"not complete", true, [][]job.RankStack{all, part}, 1},
		{"a rank is missing", true, [][]job.RankStack{all, all, all[:1]}, 2},
	} {
		n := 0
		looks := Looks(time.Minute, c.moving, func(limit time.Duration) []job.RankStack {
			if n++; (n == 1) != (limit == time.Minute) {
				t.Errorf("%s: look %d may take %s", c.name, n, limit)
			}
			return c.reads[n-1]
		})
		if len(looks) != c.want || n != len(c.reads) || len(Latest(looks)) != 2 {
			t.Errorf("%s: got %d looks after %d reads", c.name, len(looks), n)
		}
	}
	if Latest(nil) != nil {
		t.Error("there is a latest of no looks")
	}
}
