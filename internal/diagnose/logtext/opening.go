package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// opening matches the beginning of a line with the number of a rank, as in "(3) ", "3| ", "3/8 ", "rk3 " and "reader 3:
// ".
var opening = textmatch.New(`^ {0,4}([\[(<{#]?)([A-Za-z][A-Za-z_]{0,15}|)([ _.:#=-]{0,3})(\d{1,5})((?:/| of )\d{1,5})?( [|>]|[\])>}|:]{0,2})(?:\s|$)`)

// elapsed matches the time since the start of a program, which may stand before an opening.
var elapsed = textmatch.New(`^\[? {0,8}(?:[Tt]?\+ ?\d+(?:\.\d+)?s?|(?:t=)?\d+\.\d{1,6}s)\]?:? +`)

// frame matches the rest of a line of a stack trace, after an opening such as "#3".
var frame = textmatch.New(`0x[0-9a-f]|\(\)| at \S+:\d|^ +in `)

// begun is the opening of one line.
type begun struct {
	shape  string // what stands around the number
	word   string
	plain  bool // there is neither a word nor a bracket or the like beside the number
	total  bool // the number of all ranks follows the number
	number int
	end    int
}

// open reads the opening of a line. ok is false if the line has none.
func open(t string) (b begun, ok bool) {
	t = t[:min(len(t), 80)]
	stamp := 0
	for _, p := range stamps {
		if at := p.FindStringIndex(t); at != nil {
			stamp = at[1]
			break
		}
	}
	if at := elapsed.FindStringIndex(t[stamp:]); at != nil {
		stamp += at[1]
	}
	m := opening.FindStringSubmatch(t[stamp:])
	if m == nil {
		return b, false
	}
	b = begun{word: strings.ToLower(m[2]), number: Number(m[4]), end: stamp + len(strings.TrimRight(m[0], " \t"))}
	b.plain = m[1]+m[2]+m[5]+m[6] == ""
	if b.shape = m[1] + b.word + strings.TrimSpace(m[3]) + "#" + m[5]; b.word == "" {
		b.shape += m[6]
	}
	b.total = m[5] != ""
	if m[1] == "#" && frame.MatchString(t[b.end:]) {
		return b, false
	}
	return b, (b.word != "" || m[3] == "") && strings.TrimSpace(t[b.end:]) != ""
}

// turn counts the lines with one shape of opening. turns is how often the number is lower than the one before. odd is
// how often the number jumps to one that is neither the next nor the lowest, as when ranks print in any order.
type turn struct {
	begun                   // that of the first line
	lines, turns, odd, last int
	count                   map[int]int
	forms                   map[string]bool
	nested                  int // lines with a second number after a plain opening
}

// Limits on openings.
const (
	mostForms   = 3  // forms of lines that are counted
	turnsOfRow  = 3  // turns which show that the numbers come again and again
	mostOpening = 80 // per cent of the lines that must have an opening whose word says little
)

// ranks reports whether the numbers of a shape are those of ranks: they begin with 0 or 1, none is missing, and they do
// not only increase, as numbers of steps do.
func (u *turn) ranks(lines int) bool {
	n, lowest, highest := len(u.count), 1<<30, 0
	for r := range u.count {
		lowest, highest = min(lowest, r), max(highest, r)
	}
	most := u.lines*100 >= lines*mostOpening
	switch {
	case n < 2, lowest > 1, highest-lowest+1 != n, u.lines < n+2, len(u.forms) < 2 && u.odd == 0 && u.word != "", u.turns == 0:
		return false
	case strings.HasSuffix(u.word, "poolworker"), len(u.word) != 1 && counters[u.word] && !pieces[u.word], len(u.word) == 1 && !strings.Contains("rpmw", u.word) && !(strings.Contains("ghcdnb", u.word) && most && u.turns >= turnsOfRow):
		return false
	case u.total && u.odd == 0: // something counts up to the total again and again
		return false
	case u.plain:
		return lowest == 0 && most && u.odd > 1 && u.nested*2 < u.lines
	case pieces[u.word]:
		return most && u.odd > 0 && u.turns >= turnsOfRow
	case u.word == "" && strings.ContainsAny(u.shape, "|>"):
	case u.word == "":
		return u.odd > 0 || u.turns >= turnsOfRow || u.turns > 1 && len(u.forms) > 1
	}
	return true
}

// openings returns the opening of each line, if it has the shape with which the program marks the lines of its ranks.
// Other lines have a zero opening. It returns nil if there is no such shape.
func openings(text []string) []begun {
	all, found, lines := make([]begun, len(text)), map[string]*turn{}, 0
	for i, t := range text {
		if t == "" || untagged(t) {
			continue
		}
		lines++
		b, ok := open(t)
		if !ok {
			continue
		}
		all[i] = b
		u := found[b.shape]
		if u == nil {
			u = &turn{count: map[int]int{}, forms: map[string]bool{}, begun: b, last: b.number}
			found[b.shape] = u
		}
		if b.number < u.last {
			u.turns++
		}
		if _, first := u.count[b.number-1]; b.number != u.last && b.number != u.last+1 && (b.number > u.last || first) {
			u.odd++
		}
		if next := strings.TrimLeft(t[b.end:], " "); b.plain && next != "" && (next[0] >= '0' && next[0] <= '9' || next[0] == '-' || next[0] == '+') {
			u.nested++
		}
		if len(u.forms) < mostForms {
			u.forms[digits.ReplaceAllString(t, "#")] = true
		}
		u.lines, u.last = u.lines+1, b.number
		u.count[b.number]++
	}
	best := ""
	for shape, u := range found {
		if u.ranks(lines) && (best == "" || u.lines > found[best].lines || u.lines == found[best].lines && shape < best) {
			best = shape
		}
	}
	if best == "" {
		return nil
	}
	for i := range all {
		if all[i].shape != best {
			all[i] = begun{}
		}
	}
	return all
}

// opened removes the openings if a tool or program has marked nearly all lines with them, from the first marked line
// on. It sets the ranks of these lines.
func opened(lines []job.Line) {
	text := make([]string, len(lines))
	for i, l := range lines {
		text[i] = l.Text
	}
	all := openings(text)
	marked, others := 0, 0
	for i, b := range all {
		switch {
		case b.shape != "":
			marked++
		case strings.HasPrefix(text[i], "Traceback (most"):
			return // a rank that prints a traceback would have no tag
		case marked > 0 && !untagged(text[i]):
			others++
		}
	}
	if all == nil || others*otherLines > marked {
		return
	}
	for i, b := range all {
		if b.shape != "" {
			lines[i].Rank, lines[i].Text = b.number, afterTag(text[i][b.end:])
		}
	}
}

// otherLines is how many lines with an opening there must be for each other line among them.
const otherLines = 7
