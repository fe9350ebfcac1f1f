package watch

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// at returns the stack of a rank whose main thread is in a function.
func at(rank int, function string) job.RankStack {
	frames := []job.Frame{{Function: function, File: "/home/u/train.py", Line: 10}}
	return job.RankStack{Rank: rank, Tool: job.StackPySpy, Python: true, Threads: []job.ThreadStack{{PID: 100 + rank, TID: 100 + rank, Main: true, State: job.ProcessSleeping, Frames: frames}}}
}

// recordOf is the record of a rank of four that has called the collectives up to a sequence number, of which
// the last is not complete.
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

// TestBlameFlightRecords: the records of flight recorders count more than stacks, and without a rank that is
// missing they decide nothing.
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

// TestUnread: ranks that are Python programs, and of whose stacks only the functions in C could be read.
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
