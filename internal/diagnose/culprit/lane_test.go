package culprit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/culprit"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/job"
)

// TestLaneOfSign checks that what ranks print before and after a sign without a tag shows which rank printed the sign.
func TestLaneOfSign(t *testing.T) {
	start := "w0: a\nw1: a\nw2: a\nw1: b\nw0: b\nw2: b\n"
	for _, c := range []struct {
		name, log              string
		quiet, speaker, marked int
	}{
		{"the others go on", start + "SIGN\nw2: c\nw0: c\n", 1, 2, -1},
		{"the others are done", start + "w1: done\nw0: done\nSIGN\n", 2, 0, -1},
		{"a last line of many", "w0: 1 ok\nw1: 1 ok\nw2: 1 ok\nw1: 2 ok\nw0: 2 ok\nw2: 2 ok\nw1: 3 ok\nSIGN\nw0: 3 ok\nw2: 3 ok\n", 1, 1, -1},
		{"one fell silent", start + "w0: c\nw2: c\nw0: d\nw2: d\nSIGN\n", 1, 2, -1},
		{"all print until the end", start + "w0: c\nw2: c\nw1: c\nSIGN\n", -1, 1, -1},
		{"the sign has a mark", start + "w0: SIGN\nw2: c\nw1: c\n", 0, 2, 0},
		{"threads of one program", start + "SIGN\ngoroutine 7 [running]:\n", -1, -1, -1},
	} {
		var lines []job.Line
		text := strings.Split(strings.TrimSuffix(c.log, "\n"), "\n")
		for i, l := range text {
			lines = append(lines, job.Line{File: "log", Line: i + 1, Text: l, Rank: -1})
		}
		at := slices.IndexFunc(text, func(l string) bool { return strings.HasSuffix(l, "SIGN") })
		s := culprit.Sign{Log: roster.Log{Rank: -1, Lines: lines, Text: text, Lanes: logtext.Lanes(text)}, Title: "SIGN", From: at, At: at, To: at + 1}
		if q, p, m := s.Quiet(), s.Speaker(), s.Marked(); q != c.quiet || p != c.speaker || m != c.marked {
			t.Errorf("%s: got quiet %d, speaker %d, marked %d; want %d, %d, %d", c.name, q, p, m, c.quiet, c.speaker, c.marked)
		}
	}
}

// TestEnded checks that the words of a launcher or script show which of the numbered processes has failed.
func TestEnded(t *testing.T) {
	start := "w0: a\nw1: a\nw2: a\nw1: b\nw0: b\nw2: b\n"
	for last, want := range map[string]int{
		"shard 1 exited with 1":                  1,
		"chain 0: status 0\nchain 2: status 1":   2,
		"launcher: child 1 returned 1, ending 2": 1,
		"array job failed: index 2":              2,
		"main: worker 1 exit 1; others 0,143":    1,
		"worker 1 exit 1\nworker 2 exit 1":       -1,
		"worker 1 exit 143":                      -1,
		"task 9: exited with code 1":             -1, // no such rank
	} {
		text := strings.Split(start+last, "\n")
		lines := make([]job.Line, len(text))
		if got := culprit.Ended([]roster.Log{{Rank: -1, Lines: lines, Text: text, Lanes: logtext.Lanes(text)}}, ""); got != want {
			t.Errorf("%q: got %d, want %d", last, got, want)
		}
	}
}

// TestFirstNaN checks that the rank which first reports a number that is not finite is blamed for the others.
func TestFirstNaN(t *testing.T) {
	for log, want := range map[string]int{
		"rank 0: ok\nrank 2: density became NaN in 37 cells\nrank 0: residual is nan, stopping\nrank 1: residual is nan, stopping": 2,
		"rank 1: loss is nan\nrank 0: loss is nan\n": -1,
		"rank 1: ok\nrank 0: ok\n":                   -1,
	} {
		text := strings.Split(log, "\n")
		var lines []job.Line
		for i, l := range text {
			lines = append(lines, job.Line{File: "log", Line: i + 1, Text: l, Rank: -1})
		}
		if got := culprit.FirstNaN([]roster.Log{{Rank: -1, Lines: lines, Text: text}}, ""); got != want {
			t.Errorf("%q: got %d, want %d", log, got, want)
		}
	}
}

// TestClosing checks whether the last lines of all ranks show that the ranks have come to their end.
func TestClosing(t *testing.T) {
	start := "w0: step 1\nw1: step 1\nw0: step 2\nw1: step 2\n"
	for _, c := range []struct {
		log  string
		want int
	}{
		{start + "SIGN\nw1: finalize\nw0: finalize", 5},
		{start + "SIGN\nw1: step 3\nw0: step 3", -1}, // they may have ended at any time
		{start + "SIGN\nw1: finalize", -1},
	} {
		text := strings.Split(c.log, "\n")
		if got := culprit.Closing(text, logtext.Lanes(text)); got != c.want {
			t.Errorf("%q: got %d, want %d", c.log, got, c.want)
		}
	}
}
