package diagnose

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/nativetrace"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

// stream is what one rank wrote to one of its outputs, or one log file.
type stream struct {
	book  *rules.Book
	rank  int
	host  string
	lines []job.Line
	text  []string // of the lines, without the prefixes of launchers
	signs []*sign
	// message is the program's own error message that it ended with, or nil.
	message *sign
	// kernel holds the signs that are a host's records.
	kernel []*sign
	// plain[i] counts the lines before line i that are ordinary output: not part of a sign, of
	// a stack trace or of a library's messages.
	plain []int
	// mixed is true if the log has the output of several ranks, and does not say whose each line is.
	mixed bool
	// common is set if this is the stream of one rank. It has those lines of the same log that do
	// not say to which rank they belong.
	common *stream
	// partners are the other streams of the same program: its other output.
	partners []*stream
	// beside are the streams of the same log: those of all ranks.
	beside []*stream
	reader *outlook.Reader // of all streams
	known  known
}

// known is what has been found out about a log.
type known struct {
	marked *outlook.Log // see log
	laned  bool
	lanes  []int // see ranksOf
}

// sign is one sign of failure.
type sign struct {
	class   string // of an exception without its module; empty for a line
	text    string // what the rules look at
	context string // the frames of a traceback, a line each
	kernel  bool   // a record of the host, not output

	title string // one line for people
	where string // as in "train.py line 88 in step"
	from  int    // its first line in the stream
	at    int    // its decisive line
	to    int    // the line after its last

	rule *rules.Rule
	// report is what a launcher reported of a rank. Its rank is -1 if it names none.
	report *endreport.Report
	// discount is subtracted from the rule's confidence.
	discount float64
	weak     bool
	native   bool // the death of a program that is not in Python
	plain    bool // a line of output that is no exception, no report and no announced death
}

// match returns the rule of a book that holds for the sign, or nil.
func (g *sign) match(book *rules.Book) *rules.Rule {
	return book.Match(rules.Sign{Class: g.class, Text: g.text, Context: g.context, Kernel: g.kernel})
}

// streams sorts lines into streams. Their order does not depend on how they were mixed.
func streams(lines []job.Line, book *rules.Book) []*stream {
	type key struct {
		rank       int
		host, file string
		source     job.Source
		// placed is 1 if the line has a place in a log. A text that mpirun prints for a rank comes
		// twice: once without a place, and once with its place in mpirun's log.
		placed int
	}
	byKey := map[key]*stream{}
	reader := &outlook.Reader{}
	var keys []key
	for _, l := range lines {
		if l.Record != nil { // see newFlight
			continue
		}
		k := key{rank: l.Rank, host: l.Host, file: l.File, source: l.Source, placed: min(l.Line, 1)}
		s := byKey[k]
		if s == nil {
			s = &stream{book: book, rank: l.Rank, host: l.Host, reader: reader}
			byKey[k] = s
			keys = append(keys, k)
		}
		s.lines = append(s.lines, l)
		s.text = append(s.text, logtext.Plain(l.Text))
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.host, b.host), cmp.Compare(a.file, b.file), cmp.Compare(a.source, b.source), cmp.Compare(b.placed, a.placed))
	})
	all := make([]*stream, len(keys))
	for i, k := range keys {
		all[i] = byKey[k]
	}
	return all
}

// records reports whether the stream holds a host's records rather than output.
func (s *stream) records() bool {
	return len(s.lines) > 0 && (s.lines[0].Source == job.SourceKernel || s.lines[0].Source == job.SourceAgent)
}

// scan finds the signs of a stream. If kernel is true, lines that look like records of a host count
// as records.
func (s *stream) scan(kernel bool) {
	covered := make([]bool, len(s.text))
	add := func(g *sign) {
		if g.rule == nil {
			g.rule = g.match(s.book)
		}
		for i := g.from; i < g.to; i++ {
			covered[i] = true
		}
		if g.rule != nil {
			s.signs = append(s.signs, g)
		}
	}
	for _, g := range exceptions(s.text, covered, s.book) {
		add(g)
	}
	for _, d := range nativetrace.Find(s.text, covered) {
		add(&sign{class: d.Class, title: d.Title, text: d.Text, where: d.Where, from: d.From, at: d.At, to: d.To, native: true})
	}
	for _, g := range reports(s.text, covered) {
		add(g)
	}
	for i, text := range s.text {
		if s.lines[i].Reason != job.ReasonNone {
			s.addOwn(i)
			covered[i] = true
		}
		if covered[i] || len(text) < 4 || pytrace.Warning(text) || strings.Contains(text, `File "`) && pytrace.FrameLine.MatchString(text) {
			continue
		}
		if !s.book.Candidate(text) || outlook.Figures(text) || outlook.Echo(text) {
			continue
		}
		g := &sign{text: text, title: text, from: i, at: i, to: i + 1, kernel: kernel}
		if g.rule = g.match(s.book); g.rule == nil && kernel {
			g.kernel = false
			g.rule = g.match(s.book)
		}
		if level, _ := message.Record(text); level == message.Info && g.rule != nil && !g.kernel && !g.rule.Is(rules.Verdict) && g.rule.Category != job.StoppedEarly {
			continue // the program only tells what it does
		}
		if g.rule != nil && g.rule.Is(rules.Weak) && s.records() {
			continue // gangrun reports its own troubles by a Reason
		}
		if g.context == "" && (g.rule == nil || !g.kernel) && message.FromR(text) {
			if g.context = message.Calls(s.text[i+1 : min(len(s.text), i+nearLines*2)]); g.context == "" {
				g.context = message.Calls(s.text[max(0, i-nearLines):i])
			}
			if g.context != "" {
				g.rule = g.match(s.book)
			}
		}
		if g.rule != nil {
			g.weak, g.plain = g.rule.Is(rules.Weak), true
			covered[i] = true
			if g.rule.Is(rules.Continued) && i+1 < len(s.text) && !covered[i+1] {
				g.text = strings.TrimSpace(text) + " " + strings.TrimSpace(s.text[i+1])
				g.title, g.to, covered[i+1] = g.text, i+2, true
			}
			if g.kernel {
				s.kernel = append(s.kernel, g)
			} else {
				s.signs = append(s.signs, g)
			}
		}
	}
	s.blameAssertion()
	if !s.records() {
		s.addMessage(covered)
	}
	slices.SortStableFunc(s.signs, func(a, b *sign) int { return cmp.Compare(a.from, b.from) })
	s.plain = make([]int, len(s.text)+1)
	for i, text := range s.text {
		s.plain[i+1] = s.plain[i]
		if !covered[i] && outlook.Ordinary(text) {
			s.plain[i+1]++
		}
	}
}

// blameAssertion changes the rule of exceptions that say only that an assertion in a GPU kernel
// failed. They get the rule of the line in which the kernel names the assertion.
func (s *stream) blameAssertion() {
	i := slices.IndexFunc(s.signs, func(g *sign) bool { return g.plain && g.rule.Signature == "cuda-device-assert" })
	if i < 0 {
		return
	}
	for _, g := range s.signs {
		if g.rule.Signature == "device-assertion" {
			g.rule = s.signs[i].rule
		}
	}
}

// addOwn adds a line that gangrun itself has written as a sign.
func (s *stream) addOwn(i int) {
	g := &sign{text: s.text[i], title: s.text[i], from: i, at: i, to: i + 1, plain: true}
	if g.rule = rules.OfReason(s.lines[i].Reason); g.rule == nil {
		return
	}
	if g.kernel = g.rule.Is(rules.Kernel); g.kernel {
		s.kernel = append(s.kernel, g)
	} else {
		s.signs = append(s.signs, g)
	}
}

// addMessage finds the program's own error message. A weak line may be part of it.
func (s *stream) addMessage(covered []bool) {
	taken := slices.Clone(covered)
	for _, g := range s.signs {
		if g.plain && g.weak {
			for i := g.from; i < g.to; i++ {
				taken[i] = false
			}
		}
	}
	m := message.Own(s.text, taken)
	if m == nil {
		return
	}
	g := spoken(m)
	if g.rule = g.match(s.book); g.rule == nil {
		return
	}
	s.message = g
	for i := g.from; i < g.to; i++ {
		covered[i] = true
	}
}

// time returns when line i was seen.
func (s *stream) time(i int) time.Time {
	if i < len(s.lines) {
		return s.lines[i].Time
	}
	return time.Time{}
}

// spoken makes a sign of a program's own message.
func spoken(m *message.Message) *sign {
	return &sign{class: rules.Message, text: m.Text, context: m.Calls, title: m.Title, from: m.From, at: m.At, to: m.To}
}
