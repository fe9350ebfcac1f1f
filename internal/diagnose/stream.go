package diagnose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

// stream is what one rank wrote to one of its outputs, or one log file.
type stream struct {
	rank  int
	host  string
	lines []job.Line
	text  []string // of the lines, without what stands before them
	signs []*sign
	// message is the program's own error message that it ended with, or nil.
	message *sign
	// kernel holds the signs that are a host's records.
	kernel []*sign
	// plain[i] counts the lines before line i that are ordinary output: no part
	// of a sign, of a stack trace or of a library's chatter.
	plain []int
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
	// What a launcher reported of a rank: rank is -1 when it names none.
	report *report
	doubt  float64 // taken off the rule's confidence
	weak   bool
	plain  bool // a line of output, no exception, report or announced death
}

// match returns the rule that holds for the sign, or nil.
func (g *sign) match() *rules.Rule {
	return rules.Match(rules.Sign{Class: g.class, Text: g.text, Context: g.context, Kernel: g.kernel})
}

// streams sorts lines into streams, in an order that does not depend on how
// the streams were mixed.
func streams(lines []job.Line) []*stream {
	type key struct {
		rank       int
		host, file string
		source     job.Source
		// What a rank has had mpirun print comes without its place in mpirun's log,
		// and again with it.
		placed int
	}
	byKey := map[key]*stream{}
	var keys []key
	for _, l := range lines {
		k := key{rank: l.Rank, host: l.Host, file: l.File, source: l.Source, placed: min(l.Line, 1)}
		s := byKey[k]
		if s == nil {
			s = &stream{rank: l.Rank, host: l.Host}
			byKey[k] = s
			keys = append(keys, k)
		}
		s.lines = append(s.lines, l)
		s.text = append(s.text, plainText(l.Text))
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

// scan finds the signs of a stream. With kernel, lines that look like a
// host's records are taken for ones.
func (s *stream) scan(kernel bool) {
	covered := make([]bool, len(s.text))
	add := func(g *sign) {
		if g.rule == nil {
			g.rule = g.match()
		}
		for i := g.from; i < g.to; i++ {
			covered[i] = true
		}
		if g.rule != nil {
			s.signs = append(s.signs, g)
		}
	}
	for _, g := range exceptions(s.text, covered) {
		add(g)
	}
	for _, g := range natives(s.text, covered) {
		add(g)
	}
	for _, g := range reports(s.text, covered) {
		add(g)
	}
	for i, text := range s.text {
		if s.lines[i].Reason != job.ReasonNone {
			s.addOwn(i)
			covered[i] = true
		}
		if covered[i] || len(text) < 4 {
			continue
		}
		if !rules.Candidate(text) {
			continue
		}
		g := &sign{text: text, title: text, from: i, at: i, to: i + 1, kernel: kernel}
		if g.rule = g.match(); g.rule == nil && kernel {
			g.kernel = false
			g.rule = g.match()
		}
		if g.rule != nil && g.rule.Is(rules.Weak) && s.records() {
			continue // gangrun's own troubles are told otherwise
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
	if !s.records() {
		s.addMessage(covered)
	}
	slices.SortStableFunc(s.signs, func(a, b *sign) int { return cmp.Compare(a.from, b.from) })
	s.plain = make([]int, len(s.text)+1)
	for i, text := range s.text {
		s.plain[i+1] = s.plain[i]
		if !covered[i] && ordinary(text) {
			s.plain[i+1]++
		}
	}
}

// addOwn adds the sign that a line of gangrun itself is.
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

// addMessage finds the program's own error message. A line that counts near the
// end only may be part of it.
func (s *stream) addMessage(covered []bool) {
	taken := slices.Clone(covered)
	for _, g := range s.signs {
		if g.plain && g.weak {
			for i := g.from; i < g.to; i++ {
				taken[i] = false
			}
		}
	}
	g := ownMessage(s.text, taken)
	if g == nil {
		return
	}
	if g.rule = g.match(); g.rule == nil {
		return
	}
	s.message = g
	for i := g.from; i < g.to; i++ {
		covered[i] = true
	}
}

// ordinary reports whether a line is output of a program that goes on, not
// the trail of one that ends.
func ordinary(text string) bool {
	if text == "" {
		return false
	}
	for _, head := range [...]string{"  ", "\t", "frame #", "#", "=", "-", "goroutine ", "note:", "Exception raised from", "[W", "[E", "[I", "***"} {
		if strings.HasPrefix(text, head) {
			return false
		}
	}
	return !strings.Contains(text, " NCCL INFO ") && !strings.Contains(text, " NCCL WARN ")
}

// time returns when line i was seen.
func (s *stream) time(i int) time.Time {
	if i < len(s.lines) {
		return s.lines[i].Time
	}
	return time.Time{}
}

// plainText is a line without terminal escapes, without what a carriage
// return overwrote, and without the rank that a library puts before it.
func plainText(text string) string {
	text = strings.TrimRight(text, "\r\n")
	if i := strings.LastIndexByte(text, '\r'); i >= 0 {
		text = text[i+1:]
	}
	if strings.IndexByte(text, 0x1b) >= 0 {
		text = escapes.ReplaceAllString(text, "")
	}
	if text != "" && (text[0] == '[' || text[0] == '(') {
		if m := prefixes.FindStringIndex(text); m != nil {
			text = text[m[1]:]
		}
	}
	return text
}

var (
	escapes  = textmatch.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\a\x1b]*(?:\a|\x1b\\)|[@-Z\\-_])`)
	prefixes = textmatch.New(`^(?:\[rank\d+\]: ?|\[default\d+\]: ?|\((?:\w[\w.]* )?(?:pid|ip)=[^)]*\) )`)
)

// short cuts text to one printable line of at most n runes.
func short(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > n {
		text = string(runes[:n-3]) + "..."
	}
	return text
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
