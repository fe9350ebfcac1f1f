package finish

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
)

// TestTold checks whether the other output of a program says that nothing failed. The output of a rank does not count.
func TestTold(t *testing.T) {
	frames := linesOf("frame %d written", 0, 9)
	for name, c := range map[string]struct {
		log  string
		rank int
		want bool
	}{
		"none failed":     {frames + "10 frames, 0 failed", -1, true},
		"code 0":          {frames + "batch epilog: exit code 0", -1, true},
		"another rank":    {frames + "10 frames, 0 failed", 3, false},
		"still at work":   {frames, -1, false},
		"one has failed":  {frames + "10 frames, 1 failed", -1, false},
		"nothing counted": {"started\nexit code 0", -1, false},
	} {
		lines := []Line{{File: "err", Number: 1, Rank: -1, Text: "open: Permission denied", Sign: true}}
		for i, text := range strings.Split(strings.TrimSpace(c.log), "\n") {
			lines = append(lines, Line{File: "out", Number: i + 1, Rank: c.rank, Text: text, Mark: outlook.Of(text)})
		}
		if got := New(lines).Told("err"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
