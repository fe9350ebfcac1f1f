package preflight

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

// Lasting returns the categories of failures that come again each time when the job runs, as long as its code
// and its inputs do not change.
func Lasting() []job.Category {
	return []job.Category{job.IncorrectInputs, job.SemanticError, job.SyntaxError, job.ImportError}
}

const (
	knownText = "run {run} of this job failed at {when} with {category}: {cause}; its program, code, arguments, environment and inputs have not changed since"
	knownHint = "gangrun report {run} tells more; correct the cause first"
)

var knownCheck = Check{
	Code: CodeKnown,
	Asks: "Has the same job failed before, because of its inputs or its code?",
	Problems: []Problem{
		{CodeKnown, job.SeverityWarning, "", knownText, knownHint + "; with --refuse-known, gangrun does not start such a job"},
		{"known-refused", job.SeverityError, "", knownText, knownHint + ", or start the job without --refuse-known"},
		{"history-unreadable", job.SeverityWarning, "", "whether this job has failed before is not known: {error}", "{hint}"},
	},
}

// known emits the fingerprint of the job, and returns findings about earlier failures from the history. The
// findings are emitted before the trial, so that the user can end the run.
func (p *Preflight) known(ctx context.Context, spec job.Spec, facts []job.Facts, emit func(job.Event)) []job.Finding {
	if p.Known == nil || p.Input == UnknownInput {
		return nil
	}
	fingerprint, ok := memory.Fingerprint(spec, p.Env, facts, p.Input)
	if !ok {
		return nil
	}
	emit(job.Event{Time: p.now(), Kind: job.KindFingerprint, Text: fingerprint})
	e, ok, err := p.Known(ctx, fingerprint)
	if err == nil && !ok || ctx.Err() != nil {
		return nil
	}
	var f job.Finding
	if err != nil {
		f = knownCheck.finding(Hit{Signature: "history-unreadable", Values: map[string]string{"error": err.Error(), "hint": failure.Hint(err)}}, 0)
	} else {
		signature := CodeKnown
		if spec.RefuseKnown {
			signature = "known-refused"
		}
		what := string(e.Category)
		if e.Signature != "" {
			what += " (" + e.Signature + ")"
		}
		f = knownCheck.finding(Hit{Signature: signature, Values: map[string]string{
			"run": e.Run, "when": e.Ended.Local().Format(time.DateTime), "category": what, "cause": e.Text,
		}}, 0)
		f.Cause = &job.Cause{Category: e.Category, Signature: signature, Rank: -1, Confidence: 1, Text: f.Text, Hint: f.Hint, Retry: job.RetryNever}
	}
	emit(job.Event{Time: p.now(), Kind: job.KindFinding, Finding: &f})
	return []job.Finding{f}
}
