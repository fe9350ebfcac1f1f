// Package sign finds the signs of failure in the lines of a log: exceptions, the deaths of native programs, reports of
// launchers, and lines for which there is a rule. It looks at one text at a time, and does not know how a rank ended.
package sign

import (
	"cmp"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/reason"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Sign is one sign of failure.
type Sign struct {
	Class   string // of an exception without its module; empty for a line
	Text    string // what the rules look at
	Context string // the frames of a traceback, a line each
	Kernel  bool   // a record of the host, not output

	Title string // one line for people
	Where string // as in "train.py line 88 in step"
	From  int    // its first line in the text
	At    int    // its decisive line
	To    int    // the line after its last

	Rule *rule.Rule
	// Report is what a launcher reported of a rank. Its rank is -1 if it names none.
	Report *endreport.Report
	// Discount is subtracted from the rule's confidence.
	Discount float64
	Weak     bool
	Native   bool // the death of a program that is not in Python
	Plain    bool // a single line of output that a rule fits: no exception, no launcher's report, no death of a native program
}

// guesses matches the part of a text that lists possible reasons.
var guesses = textmatch.New(`(?i)[.;,:(] ?(?:this|that|which|it) (?:can|may|might|could|usually|often|sometimes|typically) (?:also )?(?:be|happen|occur|mean|indicate|result)\w*\b.*|\b(?:possible|potential|likely|common) (?:root )?(?:causes?|reasons?)\b.*|\bsolutions?: .*`)

// Match returns the rule of a book that holds for the sign, or nil. A rule that says little gives way to the rule for
// the reason that the text of the sign gives.
func (g *Sign) Match(book *rule.Book) *rule.Rule {
	r := book.Match(rule.Sign{Class: g.Class, Text: g.Text, Context: g.Context, Kernel: g.Kernel})
	if at := guesses.FindStringIndex(g.Text); r != nil && at != nil && !g.Kernel {
		if known := book.Match(rule.Sign{Class: g.Class, Text: g.Text[:at[0]], Context: g.Context}); known != nil {
			r = known
		}
	}
	if r == nil || g.Kernel || !rules.SaysLittle(r) {
		return r
	}
	if g.Class == "" { // a line does not show that the program ended with it
		return rules.Like(r, reason.Of(g.Text))
	}
	s := cmp.Or(reason.OfGPU(g.Text), reason.Of(g.Text))
	if s == "" && (r.Is(rule.Generic) || r.Signature == rules.ProgramError || r.Signature == "program-input" || r.Signature == "missing-file") {
		s = reason.About(g.Text, g.Class == rule.Message)
	}
	if s != "" && s != r.Signature {
		return rules.Named(s)
	}
	return r
}

// Spoken makes a sign of a program's own message.
func Spoken(m *message.Message) *Sign {
	return &Sign{Class: rule.Message, Text: m.Text, Context: m.Calls, Title: m.Title, From: m.From, At: m.At, To: m.To}
}
