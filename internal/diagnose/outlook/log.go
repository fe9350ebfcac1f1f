package outlook

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Log is the text of a log with the marks of its lines.
type Log struct {
	Text  []string
	Marks []Mark
	// Number returns the number that line i has in its file.
	Number func(i int) int
	// forms has, for each form of a line, the indexes of the lines of that form.
	forms map[string][]int
	// counted has, for each form of a line that counts something, the index of the first line of that form.
	counted map[string]int
}

// NewLog marks the lines of a log. The lines for which aside is true belong to signs of failure.
func NewLog(text []string, aside []bool, reader *Reader) *Log {
	l := &Log{Text: text, Marks: make([]Mark, len(text))}
	for i, t := range text {
		if l.Marks[i] = Aside; !aside[i] {
			l.Marks[i] = reader.Of(t)
		}
	}
	l.table()
	l.declare()
	return l
}

// table changes the mark Done to Aside for lines that each report the code of one process, if another line of the same
// form reports a failure.
func (l *Log) table() {
	bad := map[string]bool{}
	for i, m := range l.Marks {
		if m&Bad != 0 {
			bad[whole(l.Text[i])] = true
		}
	}
	for i, m := range l.Marks {
		if m&Done != 0 && m&Zero != 0 && bad[whole(l.Text[i])] {
			l.Marks[i] = Aside
		}
	}
}

// whole returns a line with each of its numbers replaced by "#".
func whole(t string) string { return numeral.ReplaceAllString(t, "#") }

var numeral = textmatch.New(`\d+`)

// worker matches the words with which a line names one of several processes of a job.
var worker = textmatch.New(`(?i)\b(rank|task|proc|process|chain|shard|replica|member|pe|tile|block|peer|trainer|actor|\w*worker)["']?[ _#:=-]{0,2}(\d{1,5})\b`)

// Unfinished reports whether several workers say in the log that they are done, and at least one other worker does not.
func (l *Log) Unfinished() bool {
	seen, done := map[string]map[string]bool{}, map[string]map[string]bool{}
	for i, t := range l.Text {
		if len(t) > longLine {
			continue
		}
		m := worker.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		kind := strings.ToLower(m[1])
		note(seen, kind, m[2])
		if l.Marks[i]&(Aside|Recovery) == 0 && (l.Marks[i]&(Done|Epilogue) != 0 || l.Concludes(i)) {
			note(done, kind, m[2])
		}
	}
	for kind, all := range seen {
		if n := len(done[kind]); n > 0 && n < len(all) && 2*n >= len(all) {
			return true
		}
	}
	return false
}

func note(sets map[string]map[string]bool, kind, id string) {
	if sets[kind] == nil {
		sets[kind] = map[string]bool{}
	}
	sets[kind][id] = true
}

// Buffered reports whether the program may have written line i and the lines after it earlier than their place in the
// log shows, because they waited in a buffer. That is so if no line before line i counts work.
func (l *Log) Buffered(i int) bool { return !l.Advances(0, i) }

// Succeeded reports whether line i or a later line says that the whole run has succeeded.
func (l *Log) Succeeded(i int) bool {
	return slices.ContainsFunc(l.Marks[min(i, len(l.Marks)):], func(m Mark) bool { return m&(Done|All) == Done|All })
}

// ZeroAfter reports whether line i or a later line says that a process ended with code 0.
func (l *Log) ZeroAfter(i int) bool {
	return slices.ContainsFunc(l.Marks[min(i, len(l.Marks)):], func(m Mark) bool { return m&Zero != 0 })
}

// Closes reports whether the last line of the log is one that a program prints at its end.
func (l *Log) Closes() bool {
	i := l.last(Aside)
	return i >= 0 && (l.Marks[i]&(Done|Epilogue) != 0 || l.Concludes(i))
}

// SucceededAfter reports whether a line after line n of the file says that the whole run has succeeded.
func (l *Log) SucceededAfter(n int) bool {
	for i, m := range l.Marks {
		if m&(Done|All) == Done|All && l.Number(i) > n {
			return true
		}
	}
	return false
}

// Advances reports whether a line in l.Text[from:to] counts work.
func (l *Log) Advances(from, to int) bool {
	for _, m := range l.Marks[from:to] {
		if m&Advance != 0 {
			return true
		}
	}
	return false
}

// Familiar looks at two lines by their indices: sign is the first line of a sign of failure, and line i counts
// something. Familiar reports whether a line before that sign counts work in the same form as line i (see CountForm).
// If its form is new, line i may be part of a table that explains the failure.
func (l *Log) Familiar(sign, i int) bool {
	if l.counted == nil {
		l.counted = map[string]int{}
		for i, m := range l.Marks {
			form := CountForm(l.Text[i])
			if _, seen := l.counted[form]; m&Advance != 0 && !seen {
				l.counted[form] = i
			}
		}
	}
	return l.counted[CountForm(l.Text[i])] < sign
}

// usual is how many lines of one form show that the program reports its work in this form.
const usual = 3

// Usual reports whether several lines before line j have the same form as line i (see CountForm). Line i then shows
// that the program goes on with its work.
func (l *Log) Usual(j, i int) bool {
	if l.forms == nil {
		l.forms = map[string][]int{}
		for i, m := range l.Marks {
			if m&(Aside|Error|Bad|Long) == 0 {
				form := CountForm(l.Text[i])
				l.forms[form] = append(l.forms[form], i)
			}
		}
	}
	lines := l.forms[CountForm(l.Text[i])]
	return len(lines) > usual && lines[usual-1] < j
}

// UsualAfter returns how many lines after line n of the file have the same form as several lines up to line n.
func (l *Log) UsualAfter(n int) (count int) {
	from := -1
	for i := range l.Text {
		if from < 0 && l.Number(i) > n {
			from = i
		}
		if from >= 0 && l.Usual(from, i) {
			count++
		}
	}
	return count
}

// RecoversAfter reports whether one of the count lines after line n of the file says that the program goes on in
// another way.
func (l *Log) RecoversAfter(n, count int) bool {
	for i, m := range l.Marks {
		if l.Number(i) <= n {
			continue
		}
		if m&Recovery != 0 {
			return true
		}
		if count--; count <= 0 {
			break
		}
	}
	return false
}

// last returns the last line that has none of the marks in not, or -1.
func (l *Log) last(not Mark) int {
	for i := len(l.Marks) - 1; i >= 0; i-- {
		if l.Marks[i]&not == 0 {
			return i
		}
	}
	return -1
}

// LastWord returns the last line that the program has printed about its work, or -1. It skips lines with the mark
// Aside, Epilogue or Long.
func (l *Log) LastWord() int { return l.last(Aside | Epilogue | Long) }

// EndsDone reports whether the last line of the log that has neither the mark Aside nor the mark Epilogue says that the
// work is done.
func (l *Log) EndsDone() bool {
	i := l.last(Aside | Epilogue)
	return i >= 0 && (l.Marks[i]&Done != 0 || l.Concludes(i))
}

// Concludes reports whether line i, as the last line of the log, shows that the work is done.
func (l *Log) Concludes(i int) bool {
	return !oneOfMany.MatchString(l.Text[i]) && !OfScript(l.Text[i]) && Conclusive(l.Text[i]) && !l.routine(i)
}

// routine reports whether several of the lines before a line differ from it only in numbers: the program prints such a
// line for each part of its work. Lines that name a process do not count, because each process may print its last word.
func (l *Log) routine(at int) bool {
	if process.MatchString(l.Text[at]) {
		return false
	}
	same, form := 0, whole(l.Text[at])
	for _, t := range l.Text[max(0, at-routineLines):at] {
		if len(t)/2 < len(form) && len(form)/2 < len(t) && whole(t) == form {
			same++
		}
	}
	return same >= usual
}

// routineLines is how far before a line the similar lines may be.
const routineLines = 200

// process matches the words with which a line names one of the processes of a job.
var process = textmatch.New(`(?i)\b(?:rank|worker|task|proc|process|pe|node|member|replica|\w*worker)["']?[ _#:=-]{0,2}\d|^\[\d+\]`)

// Ended returns the line after the last one with the mark Done, or -1.
func (l *Log) Ended() int {
	for i := len(l.Marks) - 1; i >= 0; i-- {
		if l.Marks[i]&Done != 0 {
			return i + 1
		}
	}
	return -1
}

// Failed reports whether the log says at its end that the script or job failed.
func (l *Log) Failed() bool {
	last := l.LastWord()
	for i := len(l.Marks) - 1; i >= 0; i-- {
		switch m := l.Marks[i]; {
		case m&Bad != 0 && l.resumes(i):
		case m&Bad != 0:
			return last < i || !l.Concludes(last)
		case m&(Done|All) != 0, m&Recovery != 0 && Wanted(l.Text[i]):
			return false
		}
	}
	return false
}

// resumes reports whether one of the lines just after line i says that what failed is started or loaded again, and a
// line without an error follows.
func (l *Log) resumes(i int) bool {
	seen, again := 0, false
	for k := i + 1; k < len(l.Marks) && seen <= resumeLines; k++ {
		switch m := l.Marks[k]; {
		case m&Aside != 0:
			continue
		case again && m&(Error|Bad) == 0:
			return true
		case m&Recovery != 0 && (Restarts(l.Text[k]) || restores.MatchString(l.Text[k])):
			again = true
		}
		seen++
	}
	return false
}

// resumeLines is how many lines after a failure may say that what failed is started again.
const resumeLines = 3

var restores = textmatch.New(`(?:^|[-:\]] )[Rr]estoring \w+`)

// DoneAfter reports whether a line after line n of the file says that the work is done. If worked is true, that line,
// or one between it and line n, must also count work or say that a process ended with code 0.
func (l *Log) DoneAfter(n int, worked bool) bool {
	for i, m := range l.Marks {
		if l.Number(i) <= n {
			continue
		}
		worked = worked && m&(Advance|Zero) == 0
		if m&Done != 0 && !worked {
			return true
		}
	}
	return false
}

// DoneBefore reports whether the last line that says that the work is done is line n of the file or an earlier one. No
// line after it may count work.
func (l *Log) DoneBefore(n int) bool {
	i := l.Ended()
	return i >= 0 && l.Number(i-1) <= n && !l.Advances(i, len(l.Text))
}

// closingLines is how many lines a program may print between the word that its work is done and its end.
const closingLines = 5

// DoneJustBefore reports whether one of the last few lines before line i says that the work is done, or that all of
// several things are done. No line between the two may count work or report an error or a failure.
func (l *Log) DoneJustBefore(i int) bool {
	seen := 0
	for i--; i >= 0 && seen < closingLines; i-- {
		switch m := l.Marks[i]; {
		case m&(Done|All) != 0, m&Aside == 0 && l.Concludes(i):
			return true
		case m&(Error|Bad|Advance) != 0:
			return false
		case m&Aside == 0:
			seen++
		}
	}
	return false
}

// AllBefore reports whether a line before line i says that all of several things are done. No line between the two may
// report an error or a failure.
func (l *Log) AllBefore(i int) bool {
	for i--; i >= 0; i-- {
		switch m := l.Marks[i]; {
		case m&All != 0:
			return true
		case m&(Error|Bad) != 0:
			return false
		}
	}
	return false
}
