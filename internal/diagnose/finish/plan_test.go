package finish

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// linesOf returns a line with each of the numbers from from to to.
func linesOf(format string, from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

func TestFigures(t *testing.T) {
	for text, want := range map[string][]figure{
		"Step   1600  KE 1.1e+00":           {{"step", 1600, 0}},
		"u=6000 lm=2.5":                     {{"u", 6000, 0}},
		"kernel 39 of 40 time 3 s":          {{"kernel", 39, 40}, {"time", 3, 0}},
		"(W pid=40, ip=10.1.0.4) epoch 5":   {{"pid", 40, 0}, {"epoch", 5, 0}},
		"max_epochs: 20":                    {{"max_epochs", 20, 0}},
		"10:22:31 loss 1.25":                nil,
		"[12/90] frame #7":                  {{"", 12, 90}, {"frame", 7, 0}},
		"at 0x7f11 in libm.so.6 of node-12": nil,
	} {
		if got := figures(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestReaches(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		rank int
		want bool
	}{
		"of a total":            {linesOf("tile %d of 40", 1, 9) + "!lost\n" + linesOf("tile %d of 40", 10, 40), -1, true},
		"from zero":             {linesOf("tile %d/40", 0, 9) + "!lost\n" + linesOf("tile %d/40", 10, 39), -1, true},
		"as planned":            {"max_iter=60\n" + linesOf("iter %d r 0.1", 0, 9) + "!lost\n" + linesOf("iter %d r 0.1", 9, 59), -1, true},
		"said at the end":       {linesOf("it %d r 0.1", 0, 9) + "!lost\n" + linesOf("it %d r 0.1", 10, 60) + "criterion training_iteration=60 met", -1, true},
		"few, with their word":  {"num_epochs: 5\n" + linesOf("epoch %d", 0, 2) + "!lost\n" + linesOf("epoch %d", 2, 4), -1, true},
		"few, of another thing": {"num_samples: 5\n" + linesOf("epoch %d", 0, 2) + "!lost\n" + linesOf("epoch %d", 2, 4), -1, false},
		"not to the end":        {"max_iter=60\n" + linesOf("iter %d r 0.1", 0, 9) + "!lost\n" + linesOf("iter %d r 0.1", 10, 40), -1, false},
		"not after it":          {linesOf("tile %d of 40", 1, 40) + "!lost", -1, false},
		"not before it":         {"!lost\n" + linesOf("tile %d of 40", 1, 40), -1, false},
		"in each of many":       {linesOf("batch %d/9", 1, 9) + "!lost\n" + linesOf("batch %d/9", 1, 9), -1, false},
		"and failed":            {linesOf("tile %d of 40", 1, 9) + "!lost\n" + linesOf("tile %d of 40", 10, 40) + "job: exit code 1", -1, false},
		"its rank":              {linesOf("1: tile %d of 40", 1, 9) + "1: !lost\n" + linesOf("1: tile %d of 40", 10, 40), 1, true},
		"not its rank":          {linesOf("1: tile %d of 40", 1, 9) + "1: !lost\n" + linesOf("2: tile %d of 40", 1, 40), 1, false},
		"not all ranks":         {linesOf("1: tile %d of 40", 1, 9) + "!lost\n" + linesOf("2: tile %d of 40", 1, 40), -1, false},
		"tests":                 {linesOf("%d/40 Test", 1, 9) + "!10/40 Test ***Failed\n" + linesOf("%d/40 Test", 11, 40), -1, false},
	} {
		at := strings.Count(c.log[:strings.Index(c.log, "!")], "\n") + 1
		if got := logged(c.log).Reaches("a.log", at, c.rank); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOver(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want bool
	}{
		"all tiles":        {linesOf("tile %d of 40", 1, 40) + "!cannot unlink", true},
		"a good word":      {"epoch 1\nepoch 2\nresults written to r.csv\n!cannot unlink", true},
		"a clock":          {linesOf("tile %d of 90", 1, 40) + "Total wall time: 0:13:34\n!cannot unlink", true},
		"a clock in steps": {strings.Repeat("Execution time = 4 s\n", 9) + "!cannot unlink", false},
		"in the middle":    {linesOf("tile %d of 40", 1, 30) + "!cannot unlink", false},
		"only a part":      {linesOf("tile %d of 40", 1, 30) + "tiles written to r.csv\n!cannot unlink", false},
		"work follows":     {"results written to r.csv\n!cannot unlink\nepoch 2", false},
		"a failure too":    {"results written to r.csv\n!cannot unlink\njob: exit code 1", false},
	} {
		at := strings.Count(c.log[:strings.Index(c.log, "!")], "\n") + 1
		if got := logged(c.log).Over("a.log", at); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDeclaredAndLeaderLeft(t *testing.T) {
	j := logged("tile 1\nFinished: SUCCESS\n!step cancelled\n!another")
	if !j.Declared("a.log", 3) || j.Declared("a.log", 2) {
		t.Error("declared")
	}
	for log, want := range map[string]bool{
		"task 1\ndriver-1 exited with code 0\n!worker-2 exited with code 137":                  true,
		"task 1\ndriver-1 exited with code 1\n!worker-2 exited with code 137":                  false,
		"driver-init exited with code 0\nstep 1\nstep 2\n!worker-2 exited with code 137":       false,
		"driver-1 exited with code 0\nstep 1\nstep 2\n!worker-2 exited with code 137":          false,
		"task 1\nworker-1 exited with code 0\n!worker-2 exited with code 137":                  false,
		"task 1\nmaster exited with code 0\nstopping\n!worker-2 exited with code 143\nstopped": true,
	} {
		at := strings.Count(log[:strings.Index(log, "!")], "\n") + 1
		if got := logged(log).LeaderLeft("a.log", at); got != want {
			t.Errorf("%q: %v", log, got)
		}
	}
}
