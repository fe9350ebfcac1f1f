package jobcheck

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestVain: a setting that has no effect gives one warning, which names it and the reason, and is no error.
func TestVain(t *testing.T) {
	const day = 24 * 3600 * job.Duration(1e9)
	for name, c := range map[string]struct {
		set  func(*job.Spec)
		want []string // words that each warning and its hint must have, separated by |; one entry for each warning
	}{
		"the defaults": {func(*job.Spec) {}, nil},
		"no retry": {func(s *job.Spec) {
			s.RetryOnDiverge = job.Diverge{Resume: job.DivergeOff, SkipSteps: 3, Env: map[string]string{"LR": "1"}, Times: 2}
		}, []string{"retry-on-diverge.skip-steps (--skip-steps), retry-on-diverge.env and retry-on-diverge.times have no effect|retry-on-diverge.resume is off|--retry-on-diverge earlier"}},
		"no retry, in old records": {func(s *job.Spec) { s.RetryOnDiverge = job.Diverge{SkipSteps: 3} }, []string{"(--skip-steps) has no effect"}},
		"a retry":                  {func(s *job.Spec) { s.RetryOnDiverge = job.Diverge{Resume: job.DivergeEarlier, SkipSteps: 3, Times: 2} }, nil},
		"a retry that never comes": {func(s *job.Spec) { s.RetryOnDiverge = job.Diverge{Resume: job.DivergeEarlier} }, []string{"(--retry-on-diverge) has no effect|times is 0"}},
		"no curves": {func(s *job.Spec) {
			s.EarlyStop, s.Curve = "off", job.Curve{Metric: "acc", Goal: job.GoalMax, Target: "1", Total: 9, DecayEnd: 0}
		}, []string{"curve.metric (--metric), curve.goal (--goal), curve.target (--target), curve.total (--total-steps) and curve.decay-end (--decay-end) have no effect|early-stop is off"}},
		"a plateau that is never sure": {func(s *job.Spec) { s.EarlyStop = "plateau=stop" }, []string{"early-stop plateau=stop has no effect|without curve.decay-end|--decay-end"}},
		"a plateau that may be sure":   {func(s *job.Spec) { s.EarlyStop, s.Curve.DecayEnd = "plateau=stop", 0 }, nil},
		"plateaus among all verdicts":  {func(s *job.Spec) { s.EarlyStop = "stop" }, nil},
		"a target": {func(s *job.Spec) { s.EarlyStop, s.Curve.Target = "will-miss=stop,flat=off,plateau=stop", "1" },
			[]string{"plateau=stop has no effect", "will-miss=stop has no effect"}},
		"a wait for nothing":   {func(s *job.Spec) { s.BeforeStopWait = day }, []string{"before-stop-wait has no effect|before-stop is none"}},
		"a wait":               {func(s *job.Spec) { s.BeforeStopWait, s.BeforeStop = day, job.BeforeStopTERM }, nil},
		"nothing is saved":     {func(s *job.Spec) { s.CheckpointDir, s.MTBF = "", day }, []string{"mtbf has no effect|checkpoint-dir"}},
		"nothing is looked at": {func(s *job.Spec) { s.Watch, s.HangTimeout, s.StragglerWindow = job.WatchOff, day, day }, []string{"hang-timeout and straggler-window have no effect|watch is off"}},
		"templates in variables": {func(s *job.Spec) {
			s.Env = map[string]string{"B": "x{{.Rank}}", "A": "{{if .ResumeFrom}}y{{end}}", "C": "{{ x }}", "D": ""}
		}, []string{"the template in env.A and the template in env.B have no effect|only in the command|GANGRUN_RANK"}},
		"nothing is to be found": {func(s *job.Spec) { s.Watch, s.HangTimeout, s.StragglerWindow = job.WatchOff, 0, 0 }, nil},
	} {
		s := job.Default()
		s.Command, s.Ranks, s.Workdir, s.CheckpointDir = []string{"x"}, 1, "/work", "/ck"
		c.set(&s)
		if err := Spec(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := Vain(s)
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
			continue
		}
		for i, f := range got {
			for word := range strings.SplitSeq(c.want[i], "|") {
				if !strings.Contains(f.Text+" / "+f.Hint, word) || f.Severity != job.SeverityWarning {
					t.Errorf("%s: %+v, want %q", name, f, word)
				}
			}
		}
	}
}
