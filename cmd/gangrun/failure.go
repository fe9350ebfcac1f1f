package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

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
	code, otherwise := exitInternal, ""
	var f *failure
	if errors.As(err, &f) {
		code, otherwise = f.code, f.otherwise
	}
	if code == exitInternal && supervisor.OfStorage(err) {
		code = exitMayPass
	}
	for _, one := range split(err) {
		fmt.Fprintf(stderr, "gangrun: error: %s\n", one)
		if hint := hintOf(one); hint != "" {
			fmt.Fprintf(stderr, "gangrun: hint: %s\n", hint)
			otherwise = ""
		}
	}
	if otherwise != "" {
		fmt.Fprintf(stderr, "gangrun: hint: %s\n", otherwise)
	}
	return code
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
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// onUsageError words what the flag parser found.
func onUsageError(c *cli.Context, err error, _ bool) error {
	name := "gangrun"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != name {
		name += " " + c.Command.Name
	}
	hint := name + " --help lists the flags"
	if flag, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok && c.Command != nil {
		var names []string
		for _, f := range c.Command.Flags {
			names = append(names, f.Names()...)
		}
		if near := nearest(strings.TrimLeft(flag, "-"), names); near != "" {
			hint = "did you mean --" + near + "? " + hint
		}
		return usage(hint, "%s has no flag %q", name, "--"+strings.TrimLeft(flag, "-"))
	}
	return usage(hint, "%w", err)
}

func unknownCommand(a *cli.App, name string) error {
	var names []string
	for _, c := range a.Commands {
		names = append(names, c.Name)
	}
	hint := "gangrun --help lists the commands"
	if near := nearest(name, names); near != "" {
		hint = "did you mean gangrun " + near + "?"
	}
	return usage(hint, "there is no command %q", name)
}

// nearest returns the word that text may have been meant for, "" if none is
// near.
func nearest(text string, words []string) string {
	best, found := 0.8, "" // Jaro-Winkler: a slip or two in a longer word
	for _, w := range words {
		if len(w) < 2 {
			continue
		}
		score := smetrics.JaroWinkler(text, w, 0.7, 4)
		if swapped(text, w) || smetrics.WagnerFischer(text, w, 1, 1, 1) == 1 {
			score = max(score, 0.95) // it makes little of short words
		}
		if score > best {
			best, found = score, w
		}
	}
	return found
}

// swapped reports whether two neighbouring letters are all that differs.
func swapped(a, b string) bool {
	for i := range len(a) - 1 {
		if len(a) == len(b) && a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}
