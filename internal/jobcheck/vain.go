package jobcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/template"
	"github.com/gangrun/gangrun/internal/text"
)

// vainCheck is the value of Check in the findings of Vain.
const vainCheck = "no-effect"

// Vain warns of settings that have no effect because of other settings. These are not errors: the other setting may
// be a flag, which takes precedence over the job file.
func Vain(s job.Spec) (findings []job.Finding) {
	warn := func(because, hint string, names ...string) {
		if len(names) == 0 {
			return
		}
		have := "has"
		if len(names) > 1 {
			have = "have"
		}
		findings = append(findings, job.Finding{
			Check: vainCheck, Severity: job.SeverityWarning, Text: fmt.Sprintf("%s %s no effect: %s", text.And(names), have, because), Hint: hint,
		})
	}
	standard := job.Default()
	d := s.RetryOnDiverge
	switch {
	case d.Resume != job.DivergeEarlier:
		warn("retry-on-diverge.resume is off", "add retry-on-diverge.resume: earlier (--retry-on-diverge earlier)", set(
			named{d.SkipSteps > 0, "retry-on-diverge.skip-steps (--skip-steps)"},
			named{len(d.Env) > 0, "retry-on-diverge.env"},
			named{d.Times > standard.RetryOnDiverge.Times, "retry-on-diverge.times"})...)
	case d.Times == 0:
		warn("retry-on-diverge.times is 0", "", "retry-on-diverge.resume (--retry-on-diverge)")
	}
	if s.EarlyStop == job.EarlyStop(job.EarlyOff) {
		warn("early-stop is off, so that no curves are judged", "use --early-stop advise", set(
			named{s.Curve.Metric != "", "curve.metric (--metric)"},
			named{s.Curve.Goal != "" && s.Curve.Goal != job.GoalAuto, "curve.goal (--goal)"},
			named{s.Curve.Target != "", "curve.target (--target)"},
			named{s.Curve.Total > 0, "curve.total (--total-steps)"},
			named{s.Curve.DecayEnd >= 0, "curve.decay-end (--decay-end)"})...)
	}
	if s.Curve.DecayEnd < 0 {
		const ask = "add curve.decay-end (--decay-end): the step from which the learning rate no longer falls, or 0 if it is constant"
		for _, kind := range []string{"plateau", "will-miss"} {
			if slices.Contains(strings.Split(string(s.EarlyStop), ","), kind+"=stop") {
				warn("without curve.decay-end, this verdict is never sure, and ends no run", ask, "early-stop "+kind+"=stop")
			}
		}
	}
	if !s.BeforeStop.Asks() {
		warn("before-stop is none", "add before-stop, as before-stop: sigusr1", set(
			named{s.BeforeStopWait != standard.BeforeStopWait && s.BeforeStopWait > 0, "before-stop-wait"})...)
	}
	if s.CheckpointDir == "" {
		warn("there is no checkpoint-dir", "add checkpoint-dir: the directory in which the job writes its checkpoints", set(named{s.MTBF > 0, "mtbf"})...)
	}
	if s.Watch == job.WatchOff {
		warn("watch is off", "", set(
			named{s.HangTimeout != standard.HangTimeout && s.HangTimeout > 0, "hang-timeout"},
			named{s.StragglerWindow != standard.StragglerWindow && s.StragglerWindow > 0, "straggler-window"})...)
	}
	warn("gangrun expands templates only in the command", "let the command set it, as in sh -c 'NAME={{.Rank}} exec ...'; GANGRUN_RANK, GANGRUN_CHECKPOINT_DIR and GANGRUN_RESUME_FROM are in the environment of every rank", templates(s.Env)...)
	return findings
}

// templates returns the names of variables whose values have a template that is only valid in a command.
func templates(env map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if got, err := template.Expand([]string{"", env[name]}, template.Fields{}); err != nil || len(got) != 2 || got[1] != env[name] {
			names = append(names, "the template in env."+name)
		}
	}
	return names
}

// named is a setting and its name.
type named struct {
	set  bool // the setting differs from its default
	name string
}

// set returns the names of those settings that are set.
func set(all ...named) (names []string) {
	for _, n := range all {
		if n.set {
			names = append(names, n.name)
		}
	}
	return names
}
