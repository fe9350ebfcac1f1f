package launcher

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecode(t *testing.T) {
	n := &node{}
	r, err := n.decode(&wire.GangReply{
		Lines:  [][]byte{encoded(t, job.Line{Text: "one"}), encoded(t, job.Line{Text: "two"})},
		Events: [][]byte{encoded(t, job.Event{Kind: job.KindStarted, Rank: 3})},
		Done:   &wire.Done{Unreaped: []int32{7}},
	})
	if err != nil || r.err != nil || r.node != n || r.ended {
		t.Fatalf("got %+v, %v", r, err)
	}
	if len(r.lines) != 2 || r.lines[0].Text != "one" || r.lines[1].Text != "two" {
		t.Errorf("lines are %+v", r.lines)
	}
	if len(r.events) != 1 || r.events[0].Kind != job.KindStarted || r.events[0].Rank != 3 {
		t.Errorf("events are %+v", r.events)
	}
	if r.done == nil || len(r.done.Unreaped) != 1 || r.done.Unreaped[0] != 7 {
		t.Errorf("done is %v", r.done)
	}
	// If a message of an agent cannot be decoded, the agent must count as lost, and gangrun must go on.
	for what, reply := range map[string]*wire.GangReply{
		"a line":   {Lines: [][]byte{[]byte("{")}},
		"an event": {Events: [][]byte{[]byte(`{"time":"yesterday"}`)}},
	} {
		if r, err := n.decode(reply); err == nil || r.err != err || r.node != n || !strings.HasPrefix(err.Error(), what+" that cannot be decoded") {
			t.Errorf("%s: got %+v, %v", what, r, err)
		}
	}
}

// TestLeavesOpen checks that only the output of a rank itself decides whether the reason of its end is unclear.
func TestLeavesOpen(t *testing.T) {
	line := func(rank int, text string) job.Line { return job.Line{Rank: rank, Text: text} }
	g := &running{outcome: job.Outcome{Lines: []job.Line{line(0, "a"), line(1, "b"), line(0, "c"), line(-1, "d")}}}
	if g.leavesOpen(job.Exit{Rank: 0}) {
		t.Error("nobody judges it, but it is unclear")
	}
	for rank, want := range []string{"ac", "b", ""} {
		for _, answer := range []bool{true, false} {
			g.settling.unclear = func(e job.Exit, printed []job.Line) bool {
				got := ""
				for _, l := range printed {
					got += l.Text
				}
				if e.Rank != rank || e.Code != 7 || got != want {
					t.Errorf("judged by %+v and %q, want rank %d, code 7 and %q", e, got, rank, want)
				}
				return answer
			}
			if got := g.leavesOpen(job.Exit{Rank: rank, Code: 7}); got != answer {
				t.Errorf("rank %d: got %t, want %t", rank, got, answer)
			}
		}
	}
}
