// Package rule has the form of the rules by which gangrun recognises failures, and finds the rule that fits a sign of
// failure. internal/diagnose/rules has the rules themselves.
package rule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Rule says how to recognise one kind of failure, and what it means.
//
// A sign of failure is an uncaught exception, a line, the way in which a rank ended, or a record of
// a host's kernel. The fields Classes, Needles, Match, Unless and Context are conditions. A rule fits a
// sign if all conditions that are set hold. Rules with Ends fit only ends of ranks, and rules with the
// trait Kernel fit only records of a kernel.
//
// If several rules fit, the most specific rule takes precedence. The most specific rules are those with a class
// and a text (Needles or Match). Then come rules with only a text, rules with only a class, rules with the
// trait Weak, rules with the trait Generic, and rules whose class is Message. Of equally specific rules, the
// first in the list takes precedence.
type Rule struct {
	Category  job.Category
	Signature string
	// Meaning says what the signature means, for the documentation. It is a clause without a full
	// stop.
	Meaning string
	// Hint says what to do next. In Hint and Text, ${name} stands for what the named group of Match or Find has
	// matched. ${title}, ${host}, ${signal}, ${code} and ${core} stand for details of the sign. See Expand.
	Hint string
	// Text replaces the default description of the sign. By default, an exception is described by the exception
	// and its place, a line by the line itself, and an end by how the rank ended.
	Text string
	// Retry replaces the default action of the category; empty means the default action.
	Retry job.Action
	// Confidence becomes job.Cause.Confidence.
	Confidence float64

	// Classes has classes of exceptions without their modules, or "*" for any class. A rule without Classes
	// fits exceptions, plain lines and error messages.
	Classes []string
	// Needles has texts of at least 4 bytes, in lower case. One of them must occur in the text of the sign,
	// where it may be in upper or lower case. Every rule for plain lines has Needles.
	Needles []string
	// Match must match the text. Find need not match; it only finds details in the text. What the groups
	// artefact, rank, host and pid of Match and Find have matched goes into the Cause.
	Match, Find *textmatch.Pattern
	// Unless must not match the text.
	Unless *textmatch.Pattern
	// Context must match one of the traceback's frames, which have the form
	// "function: source line".
	Context *textmatch.Pattern

	// Ends has the ends of ranks that the rule fits.
	Ends Ends
	// Traits are further properties of the rule.
	Traits Traits
}

// Ends are the ways in which a rank may end: by a signal, with an exit code, or with another status.
type Ends struct {
	Signals  []int
	Codes    []int
	Statuses []job.ExitStatus
	// Reasons limits Statuses to ends for which gangrun gives one of these reasons. If Statuses is empty, the
	// rule fits lines that gangrun itself has written for one of these reasons.
	Reasons []job.Reason
}

// Traits are properties of a rule.
type Traits uint

const (
	// Kernel marks rules that fit records of a host's kernel, and no output.
	Kernel Traits = 1 << iota
	// Cascade marks a sign that usually follows from the failure of another rank.
	Cascade
	// Peer marks a sign that does not show whether its rank failed by itself or because of another rank. Such a
	// sign does not count if another rank failed by itself at about the same time.
	Peer
	// Weak marks a line that programs also print without failing. Such a line counts only near the end of a
	// stream.
	Weak
	// Generic marks a sign that says little. Any other sign takes precedence over it.
	Generic
	// Continued marks a line whose sentence ends on the next line.
	Continued
	// Verdict marks a statement of the batch system, or of another program that supervises the job, about the
	// whole job. It takes precedence over what ranks print after it.
	Verdict
	// Mute marks an end, or a line about an end, that shows only that the program ended itself. The
	// cause is in the error message that the program printed.
	Mute
)

// Is reports whether the rule has one of these traits.
func (r *Rule) Is(t Traits) bool { return r.Traits&t != 0 }

// Message is the class of an error message that a program itself printed.
const Message = "error message"

// CutOff is the class of an exception that is not known, because the log ends in its traceback.
const CutOff = "cut traceback"

// TooFewRanks is the class of a message that asks for more ranks than the gang has. A rule with this class fits
// only such messages.
const TooFewRanks = "too few ranks"

// Sign is the part of a sign of failure at which rules look.
type Sign struct {
	Class   string // the class of an exception, without its module; empty for a line
	Text    string
	Context string // the frames of a traceback, a line each
	Kernel  bool   // the sign is a record of the host's kernel, not output
}

func (r *Rule) vagueness() int {
	text := len(r.Needles) > 0 || len(r.Ends.Reasons) > 0 || r.Match != nil || r.Context != nil
	switch {
	case len(r.Classes) > 0 && r.Classes[0] == Message: // any other rule that fits a message is more specific
		switch {
		case r.Is(Cascade):
			return 5
		case text:
			return 6
		}
		return 7
	case len(r.Classes) > 0 && r.Classes[0] != "*" && text:
		return 0
	case text && !r.Is(Weak):
		return 1
	case text:
		return 3
	case r.Is(Generic):
		return 4
	default:
		return 2
	}
}

// Ending reports whether the rule is about how a rank ended.
func (r *Rule) Ending() bool { return len(r.Ends.Signals)+len(r.Ends.Codes)+len(r.Ends.Statuses) > 0 }

// fits reports whether the rule fits a sign whose text contains one of the rule's needles, if it has any.
func (r *Rule) fits(s Sign) bool {
	if r.Ending() || r.Is(Kernel) != s.Kernel || r.Is(Weak) && s.Class == Message {
		return false
	}
	any := len(r.Classes) > 0 && r.Classes[0] == "*" && s.Class != "" && s.Class != Message
	if len(r.Classes) > 0 && !any && !slices.Contains(r.Classes, s.Class) {
		return false
	}
	if r.Match != nil && !r.Match.MatchString(s.Text) || r.Unless != nil && r.Unless.MatchString(s.Text) {
		return false
	}
	return r.Context == nil || r.Context.MatchString(s.Context)
}

// Expand replaces each "${name}" in template by the value of name in names. It replaces "${name|else}" by
// the text "else" if name has no value.
func Expand(template string, names map[string]string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(template, "${")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		name, otherwise, _ := strings.Cut(name, "|")
		b.WriteString(cmp.Or(names[name], otherwise))
		template = after
	}
}

// Groups returns the values of the named groups of Match and Find in text, without empty values.
func (r *Rule) Groups(text string) map[string]string {
	names := map[string]string{}
	for _, x := range []*textmatch.Pattern{r.Match, r.Find} {
		if x == nil {
			continue
		}
		m := x.FindStringSubmatch(text)
		for i, name := range x.SubexpNames() {
			if m != nil && name != "" && m[i] != "" {
				names[name] = m[i]
			}
		}
	}
	return names
}
