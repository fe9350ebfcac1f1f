package rules

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

// OfStatus returns the rule for an exit. why is the text of the exit (job.Exit.Text).
func OfStatus(status job.ExitStatus, reason job.Reason, why string) *rule.Rule {
	lower := strings.ToLower(why)
	i := slices.IndexFunc(rules(), func(r *rule.Rule) bool {
		return slices.Contains(r.Ends.Statuses, status) && (len(r.Ends.Reasons) == 0 || slices.Contains(r.Ends.Reasons, reason)) && (len(r.Needles) == 0 || slices.ContainsFunc(r.Needles, func(n string) bool { return strings.Contains(lower, n) })) &&
			(r.Match == nil || r.Match.MatchString(why)) && (r.Unless == nil || !r.Unless.MatchString(why))
	})
	return rules()[i]
}

// OfReason returns the rule for a line that gangrun itself has written for the given reason, or nil if there is
// no rule for it.
func OfReason(reason job.Reason) *rule.Rule {
	for _, r := range rules() {
		if len(r.Ends.Statuses) == 0 && slices.Contains(r.Ends.Reasons, reason) {
			return r
		}
	}
	return nil
}

// OfEnd returns the rule for a process that was ended by signal. If signal is 0, it returns the rule for
// a process that exited with code.
func OfEnd(signal, code int) *rule.Rule {
	for _, r := range rules() {
		if signal > 0 && slices.Contains(r.Ends.Signals, signal) || signal == 0 && slices.Contains(r.Ends.Codes, code) {
			return r
		}
	}
	if signal > 0 {
		return Named("signal")
	}
	return Named("exit-code")
}

// Means returns the Meaning of the signature of r, or the signature itself if no rule gives it a Meaning.
func Means(r *rule.Rule) string {
	if r.Meaning != "" {
		return r.Meaning
	}
	if i := slices.IndexFunc(rules(), func(o *rule.Rule) bool { return o.Signature == r.Signature && o.Meaning != "" }); i >= 0 {
		return rules()[i].Meaning
	}
	return r.Signature
}

// Like returns the first rule that has the given signature, but with the traits and the confidence of r. It returns r
// itself if signature is empty or that of r.
func Like(r *rule.Rule, signature string) *rule.Rule {
	if signature == "" || signature == r.Signature {
		return r
	}
	o := *Named(signature)
	o.Traits, o.Confidence = r.Traits, r.Confidence
	return &o
}

// Named returns the first rule that has the given signature.
func Named(signature string) *rule.Rule {
	i := slices.IndexFunc(rules(), func(r *rule.Rule) bool { return r.Signature == signature })
	return rules()[i]
}
