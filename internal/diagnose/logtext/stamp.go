package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// stamp is the time that a tool such as ts, a container runtime or journald has written before each line, with one space
// after it.
var stamp = textmatch.New(`^\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?(?: [\w.-]+ [\w./@-]+\[\d+\]:)?|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\]?(?: (?:stdout|stderr) [FP])?(?: \||:)?(?: |$)`)

// unstamp removes the times that another tool has written before the lines of a log, and sets the times of the lines to
// them. Either all lines have such a time, or nearly all have, and among them are lines that no program begins with a
// time: empty lines, and lines of tracebacks.
func unstamp(lines []job.Line) {
	printed, stamped, foreign := 0, 0, false
	for i, l := range lines {
		if strings.TrimSpace(l.Text) == "" {
			continue
		}
		if printed++; i == probeLines && stamped == 0 {
			return
		}
		if at := stamp.FindStringIndex(l.Text); at != nil && !tags[0].line.MatchString(l.Text) {
			stamped++
			rest := l.Text[at[1]:]
			foreign = foreign || rest == "" || strings.HasPrefix(rest, "  ") || rest[0] == '\t' || strings.HasSuffix(rest, "Traceback (most recent call last):") || launchers.MatchString(rest) || stamp.MatchString(rest)
		}
	}
	if stamped < printed && (!foreign || stamped*10 < printed*9) {
		return
	}
	for i := range lines {
		l := &lines[i]
		if at := stamp.FindStringIndex(l.Text); at != nil {
			l.Time = lineTime(l.Text[:at[1]])
			l.Text = l.Text[at[1]:]
		}
	}
}

// probeLines is after how many lines without a time a log counts as one without times.
const probeLines = 200
