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
	// What cannot be decoded is the agent's loss, not gangrun's end.
	for what, reply := range map[string]*wire.GangReply{
		"a line":   {Lines: [][]byte{[]byte("{")}},
		"an event": {Events: [][]byte{[]byte(`{"time":"yesterday"}`)}},
	} {
		if r, err := n.decode(reply); err == nil || r.err != err || r.node != n || !strings.HasPrefix(err.Error(), what+" that cannot be decoded") {
			t.Errorf("%s: got %+v, %v", what, r, err)
		}
	}
}

// An echo is told by the last thing that the rank itself said on stderr.
func TestEcho(t *testing.T) {
	line := func(rank int, source job.Source, text string) job.Line {
		return job.Line{Rank: rank, Source: source, Text: text}
	}
	echo := "Connection closed by peer"
	for name, c := range map[string]struct {
		lines []job.Line
		want  bool
	}{
		"it said so":            {[]job.Line{line(1, job.SourceStderr, "before"), line(1, job.SourceStderr, echo)}, true},
		"blank lines behind":    {[]job.Line{line(1, job.SourceStderr, echo), line(1, job.SourceStderr, "  ")}, true},
		"something else behind": {[]job.Line{line(1, job.SourceStderr, echo), line(1, job.SourceStderr, "ValueError: x")}, false},
		"another rank said so":  {[]job.Line{line(0, job.SourceStderr, echo)}, false},
		"on stdout":             {[]job.Line{line(1, job.SourceStdout, echo)}, false},
		"silence":               {nil, false},
	} {
		g := &running{outcome: job.Outcome{Lines: c.lines}, cascade: func(text string) bool { return text == echo }}
		if got := g.echo(job.Exit{Rank: 1}); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
		g.cascade = nil
		if g.echo(job.Exit{Rank: 1}) {
			t.Errorf("%s: nobody tells echoes, but it is one", name)
		}
	}
}
