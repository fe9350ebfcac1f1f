package runreport

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestLife: a report says why a gang hung, where its ranks were, and which ranks were slow.
func TestLife(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hang := job.HangReport{
		Since: begun, Stage: job.HangStep, Ranks: []int{3}, Text: "no new step for 10m0s at step 7", Step: 7,
		Groups: []job.StackGroup{{Ranks: []int{0, 1, 2}, Where: "MPI_Allreduce"}, {Ranks: []int{3}, Where: "read (loader.py:88 next)"}},
	}
	events := []job.Event{
		{Time: begun, Kind: job.KindCreated, Run: "r", Spec: &job.Spec{Ranks: 4}},
		{Time: begun, Kind: job.KindAttempt, Attempt: 1},
	}
	for i := range maxStragglers + 10 {
		events = append(events, job.Event{Time: begun, Kind: job.KindStraggler, Attempt: 1, Straggler: &job.StragglerReport{Rank: i, Text: fmt.Sprintf("rank %d is slow", i)}})
	}
	hours, cost := 12.3456, 0.5
	for _, v := range []job.CurveVerdict{
		{Kind: "plateau", Confidence: 0.75, Text: "it is level", Saves: &hours}, {Kind: "slower", Confidence: 0.6, Text: "it is slow", Saves: &cost}, {Kind: "flat", Confidence: 1, Text: "it is flat"},
	} {
		events = append(events, job.Event{Time: begun, Kind: job.KindCurve, Attempt: 1, Curve: &v})
	}
	events = append(events, job.Event{Time: begun, Kind: job.KindHang, Attempt: 1, Hang: &hang, Text: hang.Text})
	r := Fold(append(events, job.Event{Time: begun, Kind: job.KindAttempt, Attempt: 2}))
	if a := r.Attempts[0]; a.Hang == nil || a.Hang.Step != 7 || len(a.Stragglers) != maxStragglers || a.Stragglers[1].Rank != 1 {
		t.Errorf("attempt 1: %+v", a.Life)
	}
	text, err := json.Marshal(r.Attempts[1])
	if err != nil || !strings.Contains(string(text), `"activity":[],"signs":[],"hang":null,"stragglers":[],"curves":[]`) {
		t.Errorf("attempt 2: %s, %v", text, err)
	}
	summary := strings.Join(Summary(r), "\n")
	for _, want := range []string{
		"  curve    plateau, confidence 75 %: it is level; the planned end is about 12.35 GPU-hours away\n" +
			"  curve    slower, confidence 60 %: it is slow; until the planned end, that costs about 0.50 GPU-hours\n  curve    flat, confidence 100 %: it is flat\n",
		"  slow     rank 0 is slow\n", "  slow     rank 7 is slow\n           and 92 more\n",
		"  hang     no new step for 10m0s at step 7\n  where    ranks 0-2 in MPI_Allreduce\n           rank 3 in read (loader.py:88 next)\n",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("%q is not in\n%s", want, summary)
		}
	}
	// The cause has the same text, so the summary shows it once.
	r.Attempts[0].Cause = &job.Cause{Category: job.Hang, Text: hang.Text, Rank: -1}
	if summary := strings.Join(Summary(r), "\n"); strings.Count(summary, hang.Text) != 1 || !strings.Contains(summary, "  where    ranks 0-2 in") {
		t.Errorf("with a cause:\n%s", summary)
	}
}
