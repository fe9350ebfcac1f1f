package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// stamps has the forms of the time that a tool, such as kubectl, a container runtime, journald or ts, writes before
// each line of a program's output.
var stamps = []*textmatch.Pattern{
	textmatch.New(`^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?\]?:?(?: |$)(?:std(?:out|err) [FP] )?`),
	textmatch.New(`^\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:?(?: |$)`),
	textmatch.New(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [\w.-]+ [^\s\[:]+(?:\[\d+\])?:)?(?: |$)`),
	textmatch.New(`^\[?\d{10}\.\d{2,9}\]?(?: |$)`),
}

// unstamped has beginnings of lines that programs print without the time: lines of traces, and lines of launchers.
var unstamped = []string{" ", "\t", "Traceback (most", "terminate called", "panic: ", "goroutine ", "#0 ", "-----", "=====", "[rank", "*** "}

// bare reports whether a program or launcher prints a line like t without a time of its own before it. A time before
// such a line comes from a tool.
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

// srunTag matches the tag of srun, or a similarly short tag of another tool.
var srunTag = textmatch.New(`^ *\d{1,5}[:>] |^\[\d{1,5}\]:? |^<\d{1,5}>:? |^\[(?:mpiexec|proxy)[:@]|^srun: |^slurmstepd`)

// most reports whether nearly all lines are marked.
func most(marked, lines int) bool { return marked >= 3 && (lines-marked)*20 <= lines }

// unstamp sets the times of lines to those that a tool has written before each line, and removes these times. It does
// not remove the times that the program itself has written.
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

// alike returns the length of time if t begins with a time of the same form, else 0.
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

// sample is how many lines without a form at the beginning of a log show that the log does not have the form.
const sample = 20

// learned removes tags in a tool's own form, if each tag has a word and the number of the rank. It sets the ranks of
// the lines, and reports whether it did so.
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

// afterTag removes what remains of a tag after its number.
func afterTag(t string) string {
	t = strings.TrimLeft(t, ":|]>)")
	for _, end := range []string{" | ", " -> ", " > ", " - ", " "} {
		if after, ok := strings.CutPrefix(t, end); ok {
			return after
		}
	}
	return t
}
