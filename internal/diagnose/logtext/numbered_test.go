package logtext

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestUnnumber checks that the numbers of lines are removed, and the numbers of ranks are kept.
func TestUnnumber(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a page of a CI system": {"[811] mesh read\n[812] \n[813] [rank2]: boom\n[814] end", "mesh read\n\n[rank2]: boom\nend"},
		"an editor":             {"41 a$\n42 b$\n45 c$\n46 d$", "a\nb\nc\nd"},
		"grep -n":               {"99: a\n100: b\n101: c\n102: d", "a\nb\nc\nd"},
		"ranks":                 {"[0] a\n[1] a\n[2] a\n[3] a\n[4] a", "[0] a\n[1] a\n[2] a\n[3] a\n[4] a"},
		"high ranks":            {"96: a\n97: a\n96: b\n98: a", "96: a\n97: a\n96: b\n98: a"},
		"a table":               {"100 0.5\n200 0.4\n300 0.3\n400 0.2", "100 0.5\n200 0.4\n300 0.3\n400 0.2"},
	} {
		var lines []job.Line
		for _, l := range strings.Split(c.text, "\n") {
			lines = append(lines, job.Line{Text: l})
		}
		unnumber(lines)
		var got []string
		for _, l := range lines {
			got = append(got, l.Text)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestForeignTags checks that the number of a host or of a test before each line is not taken for a rank, but that of a
// worker is.
func TestForeignTags(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		rank int // of the last line
	}{
		"one host":          {"node51: a\nnode51: b\nnode51: c\nnode51: d", -1},
		"several hosts":     {"node0: a\nnode1: a\nnode0: b\nnode1: b\nnode0: c\nnode1: c", 1},
		"a worker":          {"worker 3: a\nworker 3: b\nworker 3: c\nworker 3: d", 3},
		"a worker of Julia": {"main\n      From worker 4:\ta\n      From worker 7:\tb", 7},
		"a test of ctest":   {"17: a\n17: b\n17: Abort(1) on node 2 (rank 2 in comm 0): Fatal error\n17: c", -1},
		"a rank of srun":    {"17: a\n17: b\n17: Abort(1) on node 17 (rank 17 in comm 0): Fatal error\n17: c", 17},
		"an address":        {"10.0.0.7: a\n10.0.0.7: b\n10.0.0.7: c\n10.0.0.7: d", -1},
	} {
		lines, err := Read(Origin{Name: "j.log", Rank: -1, Source: job.SourceStdout}, strings.NewReader(c.text), func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if got := lines[len(lines)-1]; got.Rank != c.rank || strings.Contains(got.Text, ":") {
			t.Errorf("%s: got rank %d of %q, want %d", name, got.Rank, got.Text, c.rank)
		}
	}
}
