package secret

import (
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// values returns the values of a secret in the environments of the job, of its trial and of its retry.
func values(spec job.Spec, name string) (all []string) {
	for _, env := range []map[string]string{spec.Env, spec.Trial.Env, spec.RetryOnDiverge.Env} {
		if value, ok := env[name]; ok {
			all = append(all, value)
		}
	}
	return all
}

// Unknown reports whether a spec lacks the value of one of its secrets. That may be so in a controller that
// only ends a run, because it does not need the value.
func Unknown(spec job.Spec) bool {
	return slices.ContainsFunc(spec.Secret, func(name string) bool {
		return slices.Contains(values(spec, name), job.Hidden)
	})
}

// Findings returns warnings about secrets that are not set, and about secrets whose values are too short to be
// hidden.
func Findings(spec job.Spec) (findings []job.Finding) {
	warn := func(text, hint string) {
		findings = append(findings, job.Finding{Check: "secret", Severity: job.SeverityWarning, Text: text, Hint: hint})
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(spec.Secret))) {
		all := values(spec, name)
		if len(all) == 0 {
			warn(fmt.Sprintf("the secret %q is set neither by env nor in the environment of gangrun", name),
				fmt.Sprintf("export %s before gangrun is started, correct its name, or take it out of secret", name))
		}
		if slices.ContainsFunc(all, func(value string) bool { return value != "" && len(forms(value)) == 0 }) {
			warn(fmt.Sprintf("the value of the secret %q is shorter than %d bytes, and is not hidden where ranks print it", name, shortSecret),
				"hide nothing so short, or give the job a longer one")
		}
	}
	return findings
}

// Hide returns a copy of e in which clean has removed the secrets from all texts. It does not change e, or data
// that e shares with other events.
func Hide(e job.Event, clean func(string) string) job.Event {
	e.Text, e.Hint, e.ExitWhy = clean(e.Text), clean(e.Hint), clean(e.ExitWhy)
	if e.Finding != nil {
		f := *e.Finding
		f.Text, f.Hint = clean(f.Text), clean(f.Hint)
		f.Cause = hideCause(f.Cause, clean)
		e.Finding = &f
	}
	e.Cause = hideCause(e.Cause, clean)
	if e.Exit != nil {
		x := hideExit(*e.Exit, clean)
		e.Exit = &x
	}
	if e.Outcome != nil {
		o := hideOutcome(*e.Outcome, clean)
		e.Outcome = &o
	}
	if e.Verdict != nil {
		v := *e.Verdict
		v.Reason = clean(v.Reason)
		e.Verdict = &v
	}
	return e
}

func hideOutcome(o job.Outcome, clean func(string) string) job.Outcome {
	o.Exits = slices.Clone(o.Exits)
	for i, x := range o.Exits {
		o.Exits[i] = hideExit(x, clean)
	}
	o.Lines = hideLines(o.Lines, clean)
	return o
}

func hideExit(x job.Exit, clean func(string) string) job.Exit {
	x.Text, x.Fault = clean(x.Text), clean(x.Fault)
	return x
}

func hideCause(c *job.Cause, clean func(string) string) *job.Cause {
	if c == nil {
		return nil
	}
	hidden := *c
	hidden.Text, hidden.Hint, hidden.Artefact = clean(c.Text), clean(c.Hint), clean(c.Artefact)
	hidden.Evidence, hidden.After = hideLines(c.Evidence, clean), hideLines(c.After, clean)
	return &hidden
}

func hideLines(lines []job.Line, clean func(string) string) []job.Line {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i].Text = clean(lines[i].Text)
	}
	return lines
}
