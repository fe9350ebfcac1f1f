package diagnose

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// decodedLines is how many lines may follow an error code.
const decodedLines = 60

var (
	// codeOnly is a message that gives a code and does not say what it means.
	codeOnly = textmatch.New(`(?i)^\W*(?:(?:error|exit|return|status|code|errno|err|rc|failed|failure|with)\b\W*)+\d+\W*$`)
	// processTag is the number of the process that PETSc puts before its lines.
	processTag = textmatch.New(`^\[\d+\] `)
	// callLine is a call through which the error passed: "KSPSolve() at itfunc.c:1071".
	callLine = textmatch.New(`^[\w:.]+\(\) at \S+:\d+$`)
)

// decoded returns the lines after a message that is only an error code: they say what the code
// means. It leaves out calls, and a line that refers to a web page if another line says more.
func (e *exception) decoded(text []string, at int) {
	var said, referring []string
	for j := at + 1; j < len(text) && j <= at+decodedLines; j++ {
		t := text[j]
		if strings.TrimSpace(t) == "" || strings.HasSuffix(t, header) || frameLine.MatchString(t) || teardown.MatchString(t) || separator(t) || numbers.MatchString(t) || errorLine(t) {
			break
		}
		e.to = j + 1
		t = strings.TrimSpace(processTag.ReplaceAllString(t, ""))
		switch {
		case callLine.MatchString(t):
		case strings.Contains(t, "://"):
			referring = append(referring, t)
		default:
			said = append(said, t)
		}
	}
	e.text = strings.Join(slices.Concat([]string{e.text}, referring, said), "\n")
	if len(said) == 0 {
		said = referring
	}
	if len(said) > 0 {
		e.message += ": " + strings.Join(said, "; ")
	}
}
