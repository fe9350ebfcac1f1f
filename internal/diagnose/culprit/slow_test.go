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
		"a list":       {"stragglers found, ending", []string{"ranks below threshold 0.7: {7}"}, 7},
		"a process":    {"imbalance over the limit: stop", []string{"slowest: proc 1 (k2)", "slowest process: 1 on k2"}, 1},
		"by its time":  {"stragglers found, ending", []string{"[rank 0] report: rank 9 on b2: 5.3 s, median 2.1 s"}, 9},
		"a percentile": {"the p95 step time of the slowest worker is 3x the median", []string{"culprit rank=6 host=g7"}, 6},
		"the reporter": {"rank0 STRAGGLER WARNING. Affected ranks: 4", nil, 4},
		"none":         {"a straggler was found", []string{"rank 3 is ready"}, -1},
	} {
		if got := Slow(c.title, []roster.Log{{Rank: -1, Text: c.log}}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestHung checks that a watcher's message names the silent rank, also if it names ranks as the program does.
func TestHung(t *testing.T) {
	known := map[int]bool{0: true, 1: true, 3: true}
	for title, want := range map[string]int{
		"watch: w1 silent for 900 s, killing all":                 1,
		"monitor: no heartbeat from 3 since 04:10, SIGKILL":       3,
		"no progress on rank 3 for 10 min, stopping":              3,
		"no heartbeat from 9 since 04:10":                         -1,
		"no output for 600 s, killing the job after 2 reminders.": -1,
	} {
		if got := Hung(title, known); got != want {
			t.Errorf("%q: got %d, want %d", title, got, want)
		}
	}
}
