package supervisor

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// shortSecret is the length in bytes below which a secret value is not looked
// for in what ranks print: it would be found in everything.
const shortSecret = 4

// hider returns what takes the values of a job's secrets out of a text. A rank
// may print them in the very lines that prove why it failed.
func hider(spec job.Spec) func(string) string {
	var pairs []string
	for _, env := range []map[string]string{spec.Env, spec.Trial.Env} {
		for _, name := range spec.Secret {
			if value := env[name]; len(value) >= shortSecret {
				pairs = append(pairs, value, job.Hidden)
			}
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// unknown reports whether a spec has a secret whose value it does not have: who ends a
// run need not know it.
func unknown(spec job.Spec) bool {
	for _, env := range []map[string]string{spec.Env, spec.Trial.Env} {
		for _, name := range spec.Secret {
			if env[name] == job.Hidden {
				return true
			}
		}
	}
	return false
}

// hide returns an event without secrets; what it shares with others is copied.
func hide(e job.Event, clean func(string) string) job.Event {
	e.Text, e.Hint, e.ExitWhy = clean(e.Text), clean(e.Hint), clean(e.ExitWhy)
	if e.Finding != nil {
		f := *e.Finding
		f.Text, f.Hint = clean(f.Text), clean(f.Hint)
		f.Cause = hideCause(f.Cause, clean)
		e.Finding = &f
	}
	e.Cause = hideCause(e.Cause, clean)
	if e.Exit != nil {
		x := *e.Exit
		x.Text = clean(x.Text)
		e.Exit = &x
	}
	if e.Verdict != nil {
		v := *e.Verdict
		v.Reason = clean(v.Reason)
		e.Verdict = &v
	}
	return e
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
