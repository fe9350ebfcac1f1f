package earlystop

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
)

// TestKinds: the verdicts of the judge are those of the job, and each has a hint.
func TestKinds(t *testing.T) {
	var kinds []string
	for _, k := range judge.Kinds {
		kinds = append(kinds, string(k))
		if _, ok := hints[k]; !ok {
			t.Errorf("no hint for %s", k)
		}
	}
	if !slices.Equal(job.CurveKinds(), kinds) {
		t.Errorf("job.CurveKinds are %q, but judge.Kinds %q", job.CurveKinds(), kinds)
	}
}

// TestNoCheckpoint: the hint names what is missing for a checkpoint after an early stop.
func TestNoCheckpoint(t *testing.T) {
	s := job.Default()
	for _, c := range []struct {
		set  func()
		end  *job.Order
		want string
	}{
		{func() {}, nil, "checkpoint-dir says"},
		{func() { s.CheckpointDir = "/ck" }, &job.Order{Ended: job.EndedTimeLimit}, "set --before-stop"},
		{func() { s.BeforeStop = job.BeforeStopTERM }, nil, "before-stop-wait gives"},
		{func() {}, &job.Order{Ended: job.EndedPreempted}, "before-stop-wait gives"},
		{func() {}, &job.Order{Ended: job.EndedTimeLimit}, "raise --timeout"},
	} {
		c.set()
		if got := NoCheckpoint(s, c.end); !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestNeverSure: a verdict that is to end a run says what is missing for that.
func TestNeverSure(t *testing.T) {
	for _, c := range []struct {
		early job.EarlyStop
		kind  judge.Kind
		end   int
		want  bool
	}{
		{"plateau=stop", judge.Plateau, -1, true}, {"stop", judge.WillMiss, -1, true},
		{"plateau=stop", judge.Plateau, 0, false}, {"advise", judge.Plateau, -1, false}, {"stop", judge.Diverged, -1, false},
	} {
		s := job.Default()
		s.EarlyStop, s.Curve.DecayEnd = c.early, c.end
		if got := NeverSure(string(c.kind), s); (got != "") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
