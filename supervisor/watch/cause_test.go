package watch

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestHangCause checks the cause that the user gets for a gang that hangs.
func TestHangCause(t *testing.T) {
	const offer = "--faulthandler"
	problem := job.CollectiveProblem{Desc: "dp", Seq: 7, Op: "nccl:all_reduce", Missing: []int{1}, Waiting: []int{0}}
	for _, c := range []struct {
		name         string
		report       job.HangReport
		faulthandler bool
		offered      bool
		evidence     int
	}{
		{"Python, and nothing could read it", job.HangReport{Unread: []int{0, 1}}, false, true, 0},
		{"Python, and --faulthandler did not help", job.HangReport{Unread: []int{0, 1}}, true, false, 0},
		{"no Python, or it was read", job.HangReport{}, false, false, 0},
		{"collectives", job.HangReport{Ranks: []int{1}, Collectives: []job.CollectiveProblem{problem}, Groups: []job.StackGroup{{Ranks: []int{0, 1}, Where: "step"}}}, false, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := HangCause(c.report, map[int]string{1: "node1"}, c.faulthandler)
			if strings.Contains(got.Hint, offer) != c.offered || len(got.Evidence) != c.evidence {
				t.Errorf("got the hint %q and the evidence %+v", got.Hint, got.Evidence)
			}
			if c.evidence > 0 && (got.Rank != 1 || got.Host != "node1" || !strings.Contains(got.Evidence[0].Text, "rank 1 has not called it")) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
