package jobfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/text"
)

// Error is one error in a job file, in a flag, or in their combination.
type Error struct {
	File         string // the job file's name; empty if the error is not in the file
	Line, Column int    // where in the file, from 1; 0 if that is not known
	Flag         string // the flag's name without dashes; empty if the error is not in a flag
	Text         string // what is wrong

	hint string
}

// Error returns where the error is, and what is wrong. An example is: job.yaml:7:3: unknown key "rank", did you mean
// "ranks"?
func (e *Error) Error() string {
	var where strings.Builder
	switch {
	case e.File != "":
		where.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&where, ":%d", e.Line)
		}
		if e.Column > 0 {
			fmt.Fprintf(&where, ":%d", e.Column)
		}
	case e.Flag != "":
		where.WriteString("--" + e.Flag)
	default:
		return e.Text
	}
	return where.String() + ": " + e.Text
}

// Hint returns what to do about the error. It is empty if the text of the error already says
// what to do.
func (e *Error) Hint() string { return e.hint }

// Errors has all errors that were found: first those in the file, in the order of the file,
// then those in flags. For mistakes of the user, this package returns only errors of this type,
// with at least one Error.
type Errors = failure.List[*Error]

// fault says what is wrong with a value. The position of the value is added later.
type fault struct{ text, hint string }

// faultOf returns the fault for an error of package job. It has the hint of the error, if the error has one.
func faultOf(err error) *fault {
	bad := &fault{text: err.Error()}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		bad.hint = hinted.Hint()
	}
	return bad
}

func faultf(hint, format string, args ...any) *fault {
	return &fault{fmt.Sprintf(format, args...), hint}
}

func quote(written string) string { return text.Quote(written) }
