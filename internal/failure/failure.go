// Package failure has the errors that end a command. Such an error has an exit code, and a hint
// that says what to type next.
package failure

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/limits"
)

// Exit codes of gangrun itself. docs/exit-codes.md lists all of them.
const (
	CodeUsage       = 64 // wrong flags, arguments or job file
	CodeNoPlacement = 69 // no hosts, slots or GPUs
	CodeInternal    = 70 // gangrun itself failed
	CodeMayPass     = 75 // trying again later may help
)

// Error is an error with the exit code of the command and with a hint.
type Error struct {
	Code int // if it is 0, the code is the code of an error that Err wraps
	Err  error
	Hint string // what to type next; empty if Err says that already
	// Fallback is the hint to give if neither this error nor the errors that it wraps have a
	// hint.
	Fallback string
}

// Error returns the text of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Usage returns an Error with the code CodeUsage, for a mistake in what the user wrote. The
// format may have %w, as in fmt.Errorf.
func Usage(hint, format string, args ...any) error {
	return &Error{Code: CodeUsage, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Hinted returns an Error with a hint and without an exit code. The format may have %w, as in
// fmt.Errorf.
func Hinted(hint, format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Exit is an error that ends the program with an exit code and without a message.
type Exit int

// Error returns the code as text.
func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Code returns the exit code of err. That is the code of the first Error in err that has a code. If there is none, it
// is CodeInternal.
func Code(err error) int {
	code := CodeInternal
	walk(err, func(err error) bool {
		if e, ok := err.(*Error); ok && e.Code != 0 {
			code = e.Code
			return false
		}
		return true
	})
	return code
}

// Hint returns the hint of err, or "". Hint looks for it first in the Errors that err wraps,
// then in package limits, and then in other errors with a method Hint.
func Hint(err error) (hint string) {
	walk(err, func(err error) bool {
		if e, ok := err.(*Error); ok {
			hint = e.Hint
		}
		return hint == ""
	})
	if hint != "" {
		return hint
	}
	if hint = limits.Hint(err); hint != "" {
		return hint
	}
	walk(err, func(err error) bool {
		if e, ok := err.(interface{ Hint() string }); ok {
			hint = e.Hint()
		}
		return hint == ""
	})
	return hint
}

// Fallback returns the first Error.Fallback of err and the errors that it wraps, or "".
func Fallback(err error) (hint string) {
	walk(err, func(err error) bool {
		if e, ok := err.(*Error); ok {
			hint = e.Fallback
		}
		return hint == ""
	})
	return hint
}

// List has errors of one type that belong together.
type List[E error] []E

// Error returns one line for each error.
func (l List[E]) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors for errors.Is and errors.As.
func (l List[E]) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// Split takes joined errors apart, so that each can be reported with its own hint. If err is an
// Error without a hint, Split takes apart the errors that are joined in it.
func Split(err error) []error {
	for {
		e, ok := err.(*Error)
		if !ok || e.Hint != "" {
			break
		}
		err = e.Err
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, Split(one)...)
	}
	return all
}

// walk calls visit for err and for each error that it wraps, outermost first, until visit
// returns false. It reports whether visit always returned true.
func walk(err error, visit func(error) bool) bool {
	if err == nil || !visit(err) {
		return err == nil
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return walk(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if !walk(one, visit) {
				return false
			}
		}
	}
	return true
}
