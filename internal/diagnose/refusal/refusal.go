// Package refusal finds out whether a file system has caused an error of gangrun itself.
package refusal

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

// refusals has the signatures of errors of file systems. See refused in package rules.
var refusals = []string{"no-space", "disk-quota", "io-error", "stale-handle", "read-only", "file-size-limit"}

// Cause returns the cause of an error of gangrun itself. ok is true if a file system has caused the error: it
// is full, read-only or broken, or a limit is reached. Cause looks for the messages of the operating system
// in the text of err, because errors of other hosts arrive as text.
func Cause(err error) (cause job.Cause, ok bool) {
	text := err.Error()
	r := rules.OfStatus(job.Unstarted, job.ReasonNone, text)
	if !slices.Contains(refusals, r.Signature) {
		return job.Cause{}, false
	}
	return job.Cause{
		Category: r.Category, Signature: r.Signature, Rank: -1, Confidence: r.Confidence, Text: text,
		Hint: rule.Expand(r.Hint, r.Groups(text)), Retry: r.Category.Action(),
		Evidence: []job.Line{{Source: job.SourceAgent, Rank: -1, Text: text}},
	}, true
}
