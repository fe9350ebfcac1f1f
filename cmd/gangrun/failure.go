package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/diagnose/refusal"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/supervisor/exitcode"
)

// tell prints what went wrong and what to type next, and returns the exit code.
func tell(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	var exit failure.Exit
	if errors.As(err, &exit) {
		return int(exit)
	}
	code, fallback := codeOf(err), failure.Fallback(err)
	for _, one := range failure.Split(err) {
		hint := failure.Hint(one)
		if cause, ok := refusal.Cause(one); ok && code == failure.CodeMayPass {
			fmt.Fprintf(stderr, "gangrun: error: %s: %s\n", cause.Category, one)
			hint = cmp.Or(hint, cause.Hint)
		} else {
			fmt.Fprintf(stderr, "gangrun: error: %s\n", one)
		}
		if hint != "" {
			fmt.Fprintf(stderr, "gangrun: hint: %s\n", hint)
			fallback = ""
		}
	}
	if fallback != "" {
		fmt.Fprintf(stderr, "gangrun: hint: %s\n", fallback)
	}
	return code
}

// codeOf returns the exit code for an error that ends the program.
func codeOf(err error) int {
	code := failure.Code(err)
	if code == failure.CodeInternal && supervisor.OfStorage(err) {
		code = failure.CodeMayPass
	}
	return code
}

// verdictOf returns err with the exit code that --exit-code verdict gives an error that ends a job before there is a
// run. An error that ends a run has its exit code already.
func verdictOf(spec job.Spec, err error) error {
	if err == nil || spec.ExitCode != job.ExitVerdict || errors.As(err, new(failure.Exit)) {
		return err
	}
	if codeOf(err) != failure.CodeInternal { // these codes are the same with and without --exit-code verdict
		return err
	}
	code, _ := exitcode.Of(exitcode.Ending{State: job.StateFailed, Internal: true}, spec.ExitCode)
	return &failure.Error{Code: code, Err: err}
}
