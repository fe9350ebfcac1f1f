package sign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/nativetrace"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Text is a text in which signs are looked for.
type Text struct {
	Lines  []string               // without the prefixes of launchers
	Reason func(i int) job.Reason // what gangrun itself says with line i
	// Records is true if the lines are records of a host, and not output. Kernel is true if lines that look like such
	// records count as records.
	Records, Kernel bool
}

// Found is what was found in a Text.
type Found struct {
	Signs []*Sign
	// Kernel holds the signs that are a host's records.
	Kernel []*Sign
	// Message is the program's own error message that it ended with, or nil.
	Message *Sign
	// Plain[i] counts the lines before line i that are ordinary output: not part of a sign, of
	// a stack trace or of a library's messages.
	Plain []int
}

// finder finds signs in a text.
type finder struct {
	Text
	Found
	book    *rule.Book
	covered []bool // the lines that belong to a sign, or to a report about the same failure
}

// Find returns the signs of failure in a text. The rules of the book say which lines are signs.
func Find(t Text, book *rule.Book) Found {
	f := &finder{Text: t, book: book, covered: make([]bool, len(t.Lines))}
	for _, g := range exceptions(t.Lines, f.covered, book) {
		f.add(g)
	}
	for _, d := range nativetrace.Find(t.Lines, f.covered) {
		if d.Said {
			d.Class = rule.Message
		}
		f.add(&Sign{Class: d.Class, Title: d.Title, Text: d.Text, Where: d.Where, From: d.From, At: d.At, To: d.To, Native: true})
	}
	for _, g := range reports(t.Lines, f.covered) {
		f.add(g)
	}
	f.passOver()
	for i := range t.Lines {
		f.line(i)
	}
	f.dropTolerated()
	f.blameAssertion()
	f.dropInconclusive()
	if !t.Records {
		f.supervisors()
		f.addMessage()
	}
	f.blameDevice()
	f.blameTransport()
	f.blameHelp()
	f.blameNote()
	f.blameState()
	f.blameOutput()
	f.blameGrowth()
	slices.SortStableFunc(f.Signs, func(a, b *Sign) int { return cmp.Compare(a.From, b.From) })
	f.Plain = make([]int, len(t.Lines)+1)
	for i, text := range t.Lines {
		f.Plain[i+1] = f.Plain[i]
		if !f.covered[i] && outlook.Ordinary(text) {
			f.Plain[i+1]++
		}
	}
	return f.Found
}

// add adds a sign if a rule fits it. It marks the lines of the sign as covered in any case.
func (f *finder) add(g *Sign) {
	if g.Rule == nil {
		g.Rule = g.Match(f.book)
	}
	for i := g.From; i < g.To; i++ {
		f.covered[i] = true
	}
	if g.Rule != nil {
		f.Signs = append(f.Signs, g)
	}
}

// keep adds the sign of one line.
func (f *finder) keep(g *Sign) {
	if g.Kernel {
		f.Found.Kernel = append(f.Found.Kernel, g)
	} else {
		f.Signs = append(f.Signs, g)
	}
}

// aroundCalls limits how many lines before or after a message of R may list the calls that led to it.
const aroundCalls = 6

// frameBytes is the greatest length of a frame of a traceback. A longer line is a traceback that has lost its line
// ends.
const frameBytes = 300

// line adds line i if the line is a sign by itself.
func (f *finder) line(i int) {
	text := f.Lines[i]
	if r := f.Reason(i); r != job.ReasonNone {
		f.addOwn(i, r)
		f.covered[i] = true
	}
	if f.covered[i] || len(text) < 4 || pytrace.Warning(text) || len(text) < frameBytes && strings.Contains(text, `File "`) && pytrace.FrameLine.MatchString(text) {
		return
	}
	if f.book.Candidate(text) && outlook.Login(text) {
		f.covered[i] = true
		return
	}
	if !f.book.Candidate(text) || outlook.Figures(text) || outlook.Echo(text) {
		return
	}
	g := &Sign{Text: text, Title: text, From: i, At: i, To: i + 1, Kernel: f.Text.Kernel}
	if g.Rule = g.Match(f.book); g.Rule == nil && g.Kernel {
		g.Kernel = false
		g.Rule = g.Match(f.book)
	}
	if level, _ := message.Record(text); level == message.Info && g.Rule != nil && !g.Kernel && !g.Rule.Is(rule.Verdict) && g.Rule.Category != job.StoppedEarly {
		return // the program only tells what it does
	}
	if g.Rule != nil && g.Rule.Is(rule.Weak) && f.Records {
		return // gangrun reports its own problems by a Reason
	}
	if (g.Rule == nil || !g.Kernel) && message.FromR(text) {
		if g.Context = message.Calls(f.Lines[i+1 : min(len(f.Lines), i+aroundCalls)]); g.Context == "" {
			g.Context = message.Calls(f.Lines[max(0, i-aroundCalls/2):i])
		}
		if g.Context != "" {
			g.Rule = g.Match(f.book)
		}
	}
	if g.Rule == nil {
		return
	}
	g.Weak, g.Plain = g.Rule.Is(rule.Weak), true
	f.covered[i] = true
	if g.Rule.Is(rule.Continued) && i+1 < len(f.Lines) && !f.covered[i+1] {
		g.Text = strings.TrimSpace(text) + " " + strings.TrimSpace(f.Lines[i+1])
		g.Title, g.To, f.covered[i+1] = g.Text, i+2, true
	}
	for strings.HasSuffix(text, "error stack:") && g.To < len(f.Lines) && !f.covered[g.To] && stackLine.MatchString(f.Lines[g.To]) {
		f.covered[g.To] = true
		g.To++
	}
	f.keep(g)
}

// stackLine matches a line of the error stack that MPICH prints after an error.
var stackLine = textmatch.New(`^\s*\w+\(\d+\)\W*: ?`)

// blameAssertion changes the rule of exceptions which say only that an assertion in a GPU kernel failed to the rule of
// the line that names the assertion.
func (f *finder) blameAssertion() {
	i := slices.IndexFunc(f.Signs, func(g *Sign) bool { return g.Plain && g.Rule.Signature == "cuda-device-assert" })
	if i < 0 {
		return
	}
	for _, g := range f.Signs {
		if g.Rule.Signature == "device-assertion" {
			g.Rule = f.Signs[i].Rule
		}
	}
}

// addOwn adds a sign for line i, which gangrun itself has written for the given reason.
func (f *finder) addOwn(i int, r job.Reason) {
	g := &Sign{Text: f.Lines[i], Title: f.Lines[i], From: i, At: i, To: i + 1, Plain: true}
	if g.Rule = rules.OfReason(r); g.Rule == nil {
		return
	}
	g.Kernel = g.Rule.Is(rule.Kernel)
	f.keep(g)
}

// addMessage finds the program's own error message. Weak lines may be part of the message.
func (f *finder) addMessage() {
	taken := slices.Clone(f.covered)
	for _, g := range f.Signs {
		if g.Plain && g.Weak {
			for i := g.From; i < g.To; i++ {
				taken[i] = false
			}
		}
	}
	m := message.Own(f.Lines, taken)
	for m != nil && outlook.Login(f.Lines[m.At]) {
		taken[m.At], f.covered[m.At] = true, true
		m = message.Own(f.Lines, taken)
	}
	if m == nil {
		m = f.unannounced(taken)
	}
	if m == nil {
		return
	}
	g := Spoken(m)
	if g.Rule = g.Match(f.book); g.Rule == nil {
		return
	}
	f.explain(g)
	f.Message = g
	for i := g.From; i < g.To; i++ {
		f.covered[i] = true
	}
}
