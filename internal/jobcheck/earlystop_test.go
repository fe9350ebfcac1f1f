package jobcheck

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestInVain: settings about curves that could have no effect are refused, and the error says what to write.
func TestInVain(t *testing.T) {
	earlier := job.Diverge{Resume: job.DivergeEarlier, Times: 1, SkipSteps: 7}
	for _, c := range []struct {
		early  job.EarlyStop
		target string
		retry  job.Diverge
		want   string // in the error; "" if there is none
	}{
		{"reached=stop", "", job.Diverge{}, "--target"},
		{"plateau=stop,will-miss=stop", "", job.Diverge{}, "--target"},
		{"reached=stop,will-miss=stop", "0.5", job.Diverge{}, ""},
		{"reached=advise", "", job.Diverge{}, ""},
		{"stop", "", job.Diverge{}, ""},
		{"slower=stop", "", job.Diverge{}, "slower=advise"},
		{"below-peers=stop", "0.5", job.Diverge{}, "below-peers=advise"},
		{job.DefaultEarlyStop, "", job.Diverge{SkipSteps: 7}, "--retry-on-diverge earlier"},
		{job.DefaultEarlyStop, "", job.Diverge{Resume: job.DivergeOff, Env: map[string]string{"LR": "1"}}, "--retry-on-diverge earlier"},
		{job.DefaultEarlyStop, "", earlier, ""},
		{"off", "", earlier, "--early-stop diverged=stop"},
		{"diverged=off,not-finite=off", "", earlier, "--early-stop diverged=stop"},
		{"diverged=off", "", earlier, ""},
		{"advise", "", earlier, ""}, // the job may say itself that it has diverged
	} {
		s := job.Default()
		s.Command, s.Ranks, s.Workdir, s.CheckpointDir = []string{"x"}, 1, "/work", "/ck"
		s.EarlyStop, s.Curve.Target, s.RetryOnDiverge = c.early, c.target, c.retry
		err := Spec(s)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, target %q, %+v: %v, want %q", c.early, c.target, c.retry, err, c.want)
		}
	}
}
