package finish

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
)

// logged returns a job with one log. In log, a line may begin with the number of its rank and a colon. A line that
// begins with "!" belongs to a sign of failure.
func logged(log string) *Job {
	var lines []Line
	for i, t := range strings.Split(log, "\n") {
		l := Line{File: "a.log", Number: i + 1, Rank: -1, Text: t}
		if len(t) > 1 && t[0] >= '0' && t[0] <= '9' && t[1] == ':' {
			l.Rank, l.Text = int(t[0]-'0'), strings.TrimSpace(t[2:])
		}
		if rest, ok := strings.CutPrefix(l.Text, "!"); ok {
			l.Sign, l.Text, l.Mark = true, rest, outlook.Aside
		} else {
			l.Mark = outlook.Of(l.Text)
		}
		lines = append(lines, l)
	}
	return New(lines)
}

func TestStartedAgain(t *testing.T) {
	const start = "solver 3 starts\nmesh of 64 cells\nstep 1 e 3\nstep 2 e 2\nstep 3 e 1\n"
	for name, c := range map[string]struct {
		log  string
		want bool
	}{
		"to the end":   {start + "!crash\n" + start + "step 4 e 1\nrun finished", true},
		"further":      {start + "!crash\n" + start + "step 4 e 1", true},
		"not as far":   {start + "step 4 e 1\n!crash\n" + start, false},
		"not at all":   {start + "!crash\nstep 4 e 1\nstep 5 e 1\nstep 6 e 1\nrun finished", false},
		"and failed":   {start + "!crash\n" + start + "step 4 e 1\n!crash", false},
		"one line":     {start + "!crash\nmesh of 64 cells\nstep 4 e 1\nstep 5 e 1\nstep 6 e 1", false},
		"with a code":  {start + "!crash\n" + start + "step 4 e 1\nsolver: exit code 1", false},
		"and a script": {"try 1\n" + start + "!crash\ntry 2\n" + start + "step 4 e 1\ntry 2 went well", true},
	} {
		at := strings.Count(c.log[:strings.Index(c.log, "!")], "\n") + 1
		if got := logged(c.log).StartedAgain("a.log", at); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAllEndWell(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		at   int
		rank int
		want bool
	}{
		"all":              {"0: step 1\n1: step 1\n1: !KeyError\n0: rank 0 done\n1: rank 1 done", 3, 1, true},
		"of nobody":        {"0: step 1\n1: step 1\n!KeyError\n0: rank 0 done\n1: rank 1 done", 3, -1, true},
		"not the rank":     {"0: step 1\n1: step 1\n1: !KeyError\n0: rank 0 done", 3, 1, false},
		"done before":      {"0: rank 0 done\n1: rank 1 done\n1: !KeyError", 3, 1, false},
		"of every step":    {"0: step 1 done\n1: step 1 done\n1: !KeyError\n0: step 2 done\n1: step 2 done", 3, 1, false},
		"different words":  {"0: step 1\n1: step 1\n1: !KeyError\n0: rank 0 done\n1: saved a core", 3, 1, false},
		"one rank is none": {"0: step 1\n0: !KeyError\n0: rank 0 done", 2, 0, false},
	} {
		if got := logged(c.log).AllEndWell("a.log", c.at, c.rank); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEndsWell(t *testing.T) {
	for name, c := range map[string]struct {
		log            string
		at, rank, work int
		want           bool
	}{
		"a result":           {"!no threads\n40 documents written", 1, -1, 0, true},
		"a result, no work":  {"!no threads\n40 documents written", 1, -1, 1, false},
		"a script's word":    {"!no threads\nrun.sh finished", 1, -1, 0, false},
		"a table":            {"!bad request\n== Results ==\nSuccessful requests: 997\nRequest throughput: 11.2", 1, -1, 0, true},
		"a table of times":   {"!bad mesh\n== Summary of timers ==\nread: 1.0 s\nsolve: 2.0 s\ntotal: 3.0 s", 1, -1, 0, false},
		"a table of nothing": {"!bad request\n== Results ==\nSuccessful requests: 0\nRequest throughput: 0.0", 1, -1, 0, false},
		"fell silent":        {"0: step 1\n1: step 1\n1: !disk full\n0: step 2\n0: results written to out.csv", 3, 1, 0, false},
		"went on":            {"0: step 1\n1: step 1\n1: !disk full\n1: step 2\n0: results written to out.csv", 3, 1, 0, true},
		"only one prints":    {"0: step 1\n1: !disk full\n0: step 2\n0: results written to out.csv", 2, 1, 0, true},
		"of every part":      {"!bad part\npart 1 saved\npart 2 saved\npart 3 saved\npart 4 saved\npart 5 saved", 1, -1, 0, false},
	} {
		if got := logged(c.log).EndsWell("a.log", c.at, c.rank, c.work); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
