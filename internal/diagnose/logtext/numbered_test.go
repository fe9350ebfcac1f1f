package logtext

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestUnnumber: the numbers of lines are removed, and those of ranks are kept.
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
