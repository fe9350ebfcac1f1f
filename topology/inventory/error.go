package inventory

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/text"
)

// maxErrors is the maximum number of errors that are reported for one list.
const maxErrors = 20

// Error is one error in a list of hosts.
type Error struct {
	Source string // the file, flag or variable that has the error
	Line   int    // line of the file, from 1; 0 if unknown or if there is no file
	Text   string // what is wrong

	hint string
}

// Error returns where the error is and what is wrong, as in lab.yaml:7: unknown key "slot",
// did you mean "slots"?
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Source, e.Line, e.Text)
	}
	return e.Source + ": " + e.Text
}

// Hint returns what to do about the error. It returns "" if the text of Error already says that.
func (e *Error) Hint() string { return e.hint }

// Errors has the errors in a list of hosts, at most about twenty. Every error of this package, except the
// errors of ReadFile, has this type and is not empty.
type Errors = failure.List[*Error]

// fault is an error whose place is not known yet.
type fault struct{ text, hint string }

func faultf(hint, format string, args ...any) *fault {
	return &fault{fmt.Sprintf(format, args...), hint}
}

// one returns the error of a source, if it is the only one.
func one(source string, line int, f *fault) Errors {
	return Errors{{Source: source, Line: line, Text: f.text, hint: f.hint}}
}

// firstLine returns the first line of an error's text.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func quote(written string) string { return text.Quote(written) }

// short cuts a message of another program if it is long.
func short(message string) string { return text.Clip(message, 200) }
