package runreport

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// now is the first time in these tests.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestGPUSeconds: a GPU that several ranks share counts once. The work of a failed attempt is wasted from the
// last checkpoint of the same attempt on.
func TestGPUSeconds(t *testing.T) {
	at := func(s int) *time.Time { return when(now.Add(time.Duration(s) * time.Second)) }
	shared := []job.Rank{{Devices: []string{"a", "b"}}, {Devices: []string{"b"}}}
	stop, good := &job.Verdict{Action: job.Stop}, &job.Verdict{Action: job.Succeed}
	tests := []struct {
		name    string
		attempt Attempt
		want    GPUSeconds
	}{
		{"failed", Attempt{Started: at(0), Ended: at(10), Verdict: stop, Placement: shared}, GPUSeconds{20, 20}},
		{"no verdict", Attempt{Started: at(0), Ended: at(10), Placement: shared}, GPUSeconds{20, 20}},
		{"saved", Attempt{Started: at(0), Ended: at(10), Verdict: stop, Placement: shared, Saved: &job.Checkpoint{Time: *at(7)}}, GPUSeconds{20, 6}},
		{"saved before it began", Attempt{Started: at(0), Ended: at(10), Verdict: stop, Placement: shared, Saved: &job.Checkpoint{Time: *at(-7)}}, GPUSeconds{20, 20}},
		{"saved by a clock that is ahead", Attempt{Started: at(0), Ended: at(10), Verdict: stop, Placement: shared, Saved: &job.Checkpoint{Time: *at(11)}}, GPUSeconds{20, 0}},
		{"good", Attempt{Started: at(0), Ended: at(10), Verdict: good, Placement: shared}, GPUSeconds{20, 0}},
		{"running", Attempt{Started: at(0), Placement: shared}, GPUSeconds{60, 0}},
		{"not started", Attempt{Placement: shared}, GPUSeconds{}},
		{"no GPUs", Attempt{Started: at(0), Ended: at(10), Placement: []job.Rank{{}}}, GPUSeconds{}},
	}
	for _, tt := range tests {
		if got := tt.attempt.gpuSeconds(now.Add(30 * time.Second)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestFingerprint folds a run that another controller has taken over after its preflight.
func TestFingerprint(t *testing.T) {
	r := Fold([]job.Event{
		{Kind: job.KindCreated, Run: "r1", Spec: &job.Spec{}}, {Kind: job.KindState, State: job.StatePreflight}, {Kind: job.KindFingerprint, Text: "f1"},
		{Kind: job.KindState, State: job.StateRunning}, {Kind: job.KindAttached, Controller: &job.Controller{PID: 7}},
	})
	if r.Fingerprint != "f1" || r.Controller.PID != 7 || r.Trial != nil {
		t.Errorf("%+v", r)
	}
}

// TestSameNote: if two attempts emit the same note, the report has it once. A note about a wait replaces an earlier one.
func TestSameNote(t *testing.T) {
	var events []job.Event
	for _, text := range []string{"skipped a", "waiting 1", "waiting 2", "skipped b", "skipped a", "skipped b"} {
		e := job.Event{Kind: job.KindNote, Text: text}
		if strings.HasPrefix(text, "waiting") {
			e.State = job.StateWaiting
		}
		events = append(events, e)
	}
	if got := strings.Join(Fold(events).Notes, ", "); got != "skipped a, waiting 2, skipped b" {
		t.Errorf("got %s", got)
	}
}

// TestLossThatIsNotFinite: a loss that is not finite is reported until the same rank prints a finite one.
func TestLossThatIsNotFinite(t *testing.T) {
	var f Folder
	tell := func(attempt, rank int, step int64, loss float64) string {
		p := job.Progress{Step: step, Epoch: -1}
		p.SetLoss(loss)
		f.Add(job.Event{Kind: job.KindProgress, Attempt: attempt, Rank: rank, Progress: &p})
		// This report has no loss.
		f.Add(job.Event{Kind: job.KindProgress, Attempt: attempt, Rank: rank, Progress: &job.Progress{Step: step, Epoch: -1}})
		a := f.Report().Last()
		if (a.Loss != nil) == (a.LossIs != "") {
			t.Errorf("step %d: the loss is %v and %q", step, a.Loss, a.LossIs)
		}
		return strings.Join(progress(a.Step, a.Total, a.Loss, a.LossIs), ", ")
	}
	for _, c := range []struct {
		attempt, rank int
		step          int64
		loss          float64
		want          string
	}{
		{1, 0, 0, 4.475, "step 0, loss 4.475"},
		{1, 0, 12, math.NaN(), "step 12, loss nan"},
		{1, 1, 13, 2.5, "step 13, loss nan"}, // the loss of rank 0 still is
		{1, 1, 14, math.Inf(-1), "step 14, loss nan"},
		{1, 0, 15, 2.25, "step 15, loss -inf"}, // the loss of rank 1
		{1, 1, 16, math.Inf(1), "step 16, loss inf"},
		{1, 1, 17, 2, "step 17, loss 2"},
		{1, 1, 18, math.NaN(), "step 18, loss nan"},
		{2, 0, 1, 4, "step 1, loss 4"}, // another attempt
	} {
		if got := tell(c.attempt, c.rank, c.step, c.loss); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	text, err := json.Marshal(f.Report())
	if err != nil || !strings.Contains(string(text), `"loss":null,"loss_is":"nan"`) {
		t.Errorf("%v: %s", err, text)
	}
}
