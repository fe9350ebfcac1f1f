package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// stamps are forms of the time that a tool writes before each line of a program's output: kubectl, a container's log,
// journald, ts.
var stamps = []*textmatch.Pattern{
	textmatch.New(`^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?\]?:?(?: |$)(?:std(?:out|err) [FP] )?`),
	textmatch.New(`^\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:?(?: |$)`),
	textmatch.New(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [\w.-]+ [^\s\[:]+(?:\[\d+\])?:)?(?: |$)`),
	textmatch.New(`^\[?\d{10}\.\d{2,9}\]?(?: |$)`),
}

// unstamped is the beginning of a line that a program prints without the time: a line of a trace, or of a launcher.
var unstamped = []string{" ", "\t", "Traceback (most", "terminate called", "panic: ", "goroutine ", "#0 ", "-----", "=====", "[rank", "*** "}

// bare reports whether a line is one that a program prints without the time and its name.
func bare(t string) bool {
	for _, p := range unstamped {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	if t == "" || strings.IndexByte("[<0123456789-=gpcsm", t[0]) < 0 && !(len(t) > 3 && t[3] == ' ') {
		return false
	}
	if launchers.MatchString(t) || hostTag.MatchString(t) || srunTag.MatchString(t) {
		return true
	}
	for _, p := range stamps {
		if p.MatchString(t) {
			return true
		}
	}
	return tags[0].line.MatchString(t)
}

// srunTag is the tag of srun, or of another tool with one as short.
var srunTag = textmatch.New(`^ *\d{1,5}[:>] |^\[\d{1,5}\]:? |^<\d{1,5}>:? |^\[(?:mpiexec|proxy)[:@]|^srun: |^slurmstepd`)

// most reports whether nearly all lines are marked.
func most(marked, lines int) bool { return marked >= 3 && (lines-marked)*20 <= lines }

// unstamp removes the time that a tool has written before each line, after it has noted the time. It does not remove
// the time that the program itself has written.
func unstamp(lines []job.Line) {
	for _, p := range stamps {
		marked, all, outer, first := 0, 0, false, ""
		for _, l := range lines {
			if l.Text == "" {
				continue
			}
			all++
			end := alike(l.Text, first)
			if end == 0 {
				if at := p.FindStringIndex(l.Text); at != nil {
					end = at[1]
					first = l.Text[:end]
				}
			}
			if end > 0 {
				marked++
				outer = outer || bare(l.Text[end:]) || end == len(l.Text)
			}
			if all == sample && marked == 0 {
				break
			}
		}
		if !outer || !most(marked, all) {
			continue
		}
		date(lines)
		for i := range lines {
			if at := p.FindStringIndex(lines[i].Text); at != nil {
				lines[i].Text = lines[i].Text[at[1]:]
			}
		}
		return
	}
}

// alike returns the length of a time if a text begins with a time of the same form, else 0.
func alike(t, time string) int {
	if time == "" || len(t) < len(time) {
		return 0
	}
	for i := range len(time) {
		digit := time[i] >= '0' && time[i] <= '9'
		if digit != (t[i] >= '0' && t[i] <= '9') || !digit && t[i] != time[i] {
			return 0
		}
	}
	return len(time)
}

// sample is how many lines without a form show that a log does not have it.
const sample = 20

// learned removes the tags that a tool has written before each line in a form of its own, with a word and the number of
// the rank. It sets the ranks of the lines, and reports whether it did so.
func learned(lines []job.Line) bool {
	text := make([]string, len(lines))
	for i, l := range lines {
		text[i] = l.Text
	}
	key := laneKey(text)
	if key == "" {
		return false
	}
	marked, all := 0, 0
	var buf []mark
	tagged := func(t string) (mark, bool) {
		for _, m := range marks(t, buf[:0]) {
			if m.key == key {
				return m, m.head
			}
		}
		return mark{}, false
	}
	for _, t := range text {
		if t == "" || untagged(t) {
			continue
		}
		all++
		if _, ok := tagged(t); ok {
			marked++
		}
	}
	if !most(marked, all) {
		return false
	}
	for i := range lines {
		if m, ok := tagged(lines[i].Text); ok {
			lines[i].Rank, lines[i].Text = m.number, afterTag(lines[i].Text[m.end:])
		}
	}
	return true
}

// afterTag removes the end of a tag.
func afterTag(t string) string {
	t = strings.TrimLeft(t, ":|]>)")
	for _, end := range []string{" | ", " -> ", " > ", " - ", " "} {
		if after, ok := strings.CutPrefix(t, end); ok {
			return after
		}
	}
	return t
}
