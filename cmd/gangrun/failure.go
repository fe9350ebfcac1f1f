package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor"
)

// Exit codes of gangrun itself; docs/exit-codes.md has them all.
const (
	exitUsage    = 64
	exitInternal = 70
	exitMayPass  = 75
)

// failure is an error with the code to exit with and, where there is one, what
// to type next.
type failure struct {
	code int
	err  error
	hint string
	// otherwise is the hint where no part of err has one.
	otherwise string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage is a failure of the user's words.
func usage(hint, format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// exitCode ends the program with a code and no further words.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// tell says what went wrong, and what to type next, and returns the exit code.
func tell(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	var silent exitCode
	if errors.As(err, &silent) {
		return int(silent)
	}
	code, otherwise := codeOf(err), ""
	var f *failure
	if errors.As(err, &f) {
		otherwise = f.otherwise
	}
	for _, one := range split(err) {
		hint := hintOf(one)
		if cause, ok := diagnose.Refusal(one); ok && code == exitMayPass {
			fmt.Fprintf(stderr, "gangrun: error: %s: %s\n", cause.Category, one)
			hint = cmp.Or(hint, cause.Hint)
		} else {
			fmt.Fprintf(stderr, "gangrun: error: %s\n", one)
		}
		if hint != "" {
			fmt.Fprintf(stderr, "gangrun: hint: %s\n", hint)
			otherwise = ""
		}
	}
	if otherwise != "" {
		fmt.Fprintf(stderr, "gangrun: hint: %s\n", otherwise)
	}
	return code
}

// codeOf returns the code that an error ends the program with.
func codeOf(err error) int {
	code := exitInternal
	var f *failure
	if errors.As(err, &f) {
		code = f.code
	}
	if code == exitInternal && supervisor.OfStorage(err) {
		code = exitMayPass
	}
	return code
}

// verdictOf gives an error that ends a job before there is a run the code that the job
// asks for: what ends a run has it already.
func verdictOf(spec job.Spec, err error) error {
	if err == nil || spec.ExitCode != job.ExitVerdict || errors.As(err, new(exitCode)) {
		return err
	}
	if codeOf(err) != exitInternal { // 64 and 75 are the same in every mode
		return err
	}
	code, _ := supervisor.ExitCode(supervisor.Ending{State: job.StateFailed, Internal: true}, spec.ExitCode)
	return &failure{code: code, err: err}
}

// split takes joined errors apart.
func split(err error) []error {
	var f *failure
	if errors.As(err, &f) && f.hint == "" {
		err = f.err
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, split(one)...)
		}
		return all
	}
	return []error{err}
}

func hintOf(err error) string {
	var f *failure
	if errors.As(err, &f) && f.hint != "" {
		return f.hint
	}
	if hint := limitHint(err); hint != "" {
		return hint
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}
