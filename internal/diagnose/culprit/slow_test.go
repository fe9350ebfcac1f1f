package culprit

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/roster"
)

func TestSlow(t *testing.T) {
	for name, c := range map[string]struct {
		title string
		log   []string
		want  int
	}{
		"in the title": {"Affected ranks: {StragglerId(rank=9, node='n2')}", []string{"rank 3 is slow"}, 9},
		"above it":     {"persistent straggler, ending the run", []string{"rank 22 (n7 gpu6) is 2.9x slower than the median"}, 22},
		"the slowest":  {"below the floor, stopping", []string{"slowest rank 4", "slowest rank 1", "slowest rank 1"}, 1},
		"none":         {"a straggler was found", []string{"rank 3 is ready"}, -1},
	} {
		if got := Slow(c.title, []roster.Log{{Rank: -1, Text: c.log}}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
