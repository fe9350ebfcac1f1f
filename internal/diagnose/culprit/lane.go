package culprit

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Marked returns the rank that the decisive line of a sign marks as its own. If that line has no mark, Marked returns
// the rank that the first line of the sign marks as its own, or -1. It ignores the lines between these two, because
// other ranks may have printed them. It also ignores the mark of the first line if another rank had begun that line
// and the traceback begins in its middle.
func (s Sign) Marked() int {
	if s.Lanes == nil {
		return -1
	}
	if r := s.Lanes[s.At]; r >= 0 {
		return r
	}
	// The line begins with what another rank had begun to print.
	if strings.Index(s.Text[s.From], "Traceback (most") > 0 && !strings.Contains(s.Text[s.From], " Traceback") {
		return -1
	}
	return s.Lanes[s.From]
}

var (
	// finished matches a word in the last line of a rank that has done its work.
	finished = textmatch.New(`(?i)\b(?:done|finished|complete[d]?|converged|closed|flushed|idle|bye|success\w*|ok|exit(?:ing|ed)? (?:normally|with code 0|0)|status[ =]0|waiting for (?:the )?others|all \d+ \w+ (?:written|stored|served))\b`)
	// ended matches the words with which a launcher or a script says that a numbered process failed.
	ended = textmatch.New(`(?i)\b(?:rank|worker|shard|child|process|proc|chain|runner|trial|replica|node|index|member|slot|task|pe|instance|client|actor|executor|reader|part)[ #:_=-]{1,2}(\d{1,5})(?::|,| -|\b) ?(?:\w+ ){0,2}?(?:exit(?:ed)?|status|returned|rc|failed|died|crashed|killed)\b(?:(?: (?:with|exit|code|status))*[ :=]{1,2}(-?\d{1,3})\b)?|(?i)\bfailed: (?:index|rank|shard|worker|task|member) (\d{1,5})$`)
)

// Ended returns the only rank that a launcher or script says has failed, or -1. That rank must be one to which some
// line of the logs belongs, or the one that title names.
func Ended(logs []roster.Log, title string) int {
	known := map[int]bool{}
	for _, l := range logs {
		for _, r := range l.Lanes {
			known[r] = r >= 0
		}
		known[l.Rank] = l.Rank >= 0
	}
	only := -1
	for _, l := range logs {
		for i, t := range l.Text {
			if l.Rank >= 0 || len(t) > 300 || l.Lanes != nil && l.Lanes[i] >= 0 && !strings.Contains(t[:min(len(t), 40)], "xit") && !strings.Contains(t, "status") {
				continue
			}
			m := ended.FindStringSubmatch(t)
			if m == nil || m[2] == "0" || m[2] == "143" || m[2] == "-15" || m[2] == "15" {
				continue
			}
			r := first([]string{"", m[1], m[3]})
			if r >= 0 && only >= 0 && r != only {
				return -1
			}
			only = max(only, r)
		}
	}
	if m := ended.FindStringSubmatch(title[:min(len(title), 200)]); m != nil && m[2] != "0" && !known[only] {
		return first([]string{"", m[1], m[3]})
	}
	if !known[only] {
		return -1
	}
	return only
}

// numbered matches a line that begins with the number of a rank in brackets or before a bar.
var numbered = textmatch.New(`^ {0,3}([\[(<]?)(\d{1,5})([\])>|])[:|]? \S`)

// Numbered returns the number at the beginning of the decisive line of a sign. It returns -1 unless the lines
// around it that begin in the same form have at least three different numbers, one of which is 0.
func (s Sign) Numbered() int {
	m := numbered.FindStringSubmatch(s.Text[s.At])
	if m == nil {
		return -1
	}
	others := map[string]bool{}
	for _, t := range s.Text {
		if o := numbered.FindStringSubmatch(t); o != nil && o[1] == m[1] && o[3] == m[3] {
			others[o[2]] = true
		}
	}
	if !others["0"] || len(others) < margin+1 {
		return -1
	}
	return logtext.Number(m[2])
}

// margin is how many lines every other rank must print after the last line of a rank that has fallen silent.
const margin = 2

// Quiet returns the rank that prints nothing more after a sign, or that fell silent before it while the others went on.
// It returns -1 if there is no such rank, or several.
func (s Sign) Quiet() int {
	if s.Lanes == nil {
		return -1
	}
	threads := slices.ContainsFunc(s.Text[s.From:min(len(s.Text), s.To+near)], thread.MatchString)
	last, after := map[int]int{}, map[int]bool{}
	for i, r := range s.Lanes {
		if r < 0 {
			continue
		}
		last[r] = i
		after[r] = after[r] || i > s.From
	}
	var open []int
	for r, i := range last {
		if !after[r] && !(finished.MatchString(s.Text[i]) && !s.routine(r, i)) {
			open = append(open, r)
		}
	}
	switch {
	case len(open) == 0 || len(last) < 2 || threads && !slices.Contains(slices.Collect(maps.Values(after)), true):
		return -1
	case len(open) == 1:
		return open[0]
	}
	earliest := open[0]
	for _, r := range open {
		if last[r] < last[earliest] {
			earliest = r
		}
	}
	more := map[int]int{}
	for _, r := range s.Lanes[last[earliest]+1:] {
		more[r]++
	}
	for _, r := range open {
		if r != earliest && more[r] < margin {
			return -1
		}
	}
	return earliest
}

// routine reports whether a rank has already printed several lines like line at: it prints such a line for each part of
// its work.
func (s Sign) routine(rank, at int) bool {
	same := 0
	for i := at - 1; i >= 0 && same < often; i-- {
		if s.Lanes[i] == rank && len(s.Text[i]) < longTitle && logtext.Alike(s.Text[i], s.Text[at]) {
			same++
		}
	}
	return same >= often
}

// often is how many earlier lines of the same form make a line routine.
const often = 2

// FirstSilent returns the last line of the rank that fell silent first.
func FirstSilent(lanes []int) int {
	last := map[int]int{}
	for i, r := range lanes {
		if r >= 0 {
			last[r] = i
		}
	}
	first := len(lanes)
	for _, i := range last {
		first = min(first, i)
	}
	return first
}

// Closing looks at the last line of each rank of a log. If all these lines have the same form, and no other line of the
// log has it, every rank has come to its end. Closing then returns the first of these lines. Otherwise it returns -1.
func Closing(text []string, lanes []int) int {
	last := map[int]int{}
	for i, r := range lanes {
		if r >= 0 {
			last[r] = i
		}
	}
	form, first, same := "", len(text), 0
	for _, i := range last {
		f := numbers.ReplaceAllString(text[i], "#")
		if form != "" && f != form || len(f) > 300 {
			return -1
		}
		form, first = f, min(first, i)
	}
	for _, t := range text {
		if len(t) < 2*len(form) && numbers.ReplaceAllString(t, "#") == form {
			same++
		}
	}
	if len(last) < 2 || same != len(last) {
		return -1
	}
	return first
}

// numbers matches the numbers of a line.
var numbers = textmatch.New(`\d+`)

// recent is how many lines per rank before a sign show which ranks were printing at that time.
const recent = 4

// thread matches a line of a trace of one of the threads of a program. All threads of a program end together.
var thread = textmatch.New(`^goroutine \d+ \[|^thread '[^']*' .*panicked at|\bon Worker instance at|^\s+at MessagePort`)

// Speaker returns the rank that has printed the line just above a sign, if other ranks were printing at that time, too.
// It returns -1 otherwise.
func (s Sign) Speaker() int {
	if s.Lanes == nil || slices.ContainsFunc(s.Text[s.From:min(len(s.Text), s.To+near)], thread.MatchString) {
		return -1
	}
	ranks := map[int]bool{}
	for _, r := range s.Lanes {
		ranks[r] = r >= 0
	}
	above, seen := -1, 0
	for i := s.From - 1; i >= 0 && seen < recent*len(ranks); i-- {
		r := s.Lanes[i]
		if r < 0 && above < 0 && strings.TrimSpace(s.Text[i]) != "" {
			return -1
		}
		if r < 0 {
			continue
		}
		if seen++; above < 0 {
			above = r
		}
		if r != above {
			return above
		}
	}
	return -1
}

// notFinite matches the words for a number that is not finite.
var notFinite = textmatch.New(`(?i)\bnan\b|\bnon-?finite\b|\bnot (?:a )?finite\b`)

// FirstNaN returns the first rank that reports a number that is not finite, if the messages of the other ranks differ
// from its message. The other ranks have probably received the number from the first rank. FirstNaN returns -1 if there
// is no such rank, or if the title of the sign names a rank.
func FirstNaN(logs []roster.Log, title string) int {
	if roster.Own(title) >= 0 {
		return -1
	}
	type word struct {
		text string
		line int
	}
	said, file, first := map[int]word{}, "", -1
	for _, l := range logs {
		for i, t := range l.Text {
			if len(t) > 500 || !notFinite.MatchString(t) {
				continue
			}
			r := l.At(i)
			if r < 0 {
				continue
			}
			if file != "" && l.Lines[i].File != file || l.Lines[i].Line == 0 {
				return -1
			}
			file = l.Lines[i].File
			if w, ok := said[r]; !ok || l.Lines[i].Line < w.line {
				said[r] = word{t, l.Lines[i].Line}
			}
		}
	}
	for r, w := range said {
		if first < 0 || w.line < said[first].line {
			first = r
		}
	}
	for r, w := range said {
		if r != first && logtext.Alike(w.text, said[first].text) {
			return -1
		}
	}
	return first
}
