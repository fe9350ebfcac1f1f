// Package home is where runs are kept: a directory for each, with its job
// file, its journal, its reports and its ranks' logs.
package home

import (
	"fmt"
	"path/filepath"
)

// Error is what is wrong with the home, or with what was asked of it.
type Error struct {
	text, hint string
	err        error // nil, or what text ends with
}

// Error says what is wrong.
func (e *Error) Error() string {
	if e.err != nil {
		return e.text + ": " + e.err.Error()
	}
	return e.text
}

// Unwrap returns what is behind it, or nil.
func (e *Error) Unwrap() error { return e.err }

// Hint says what to do about it.
func (e *Error) Hint() string { return e.hint }

// Dir returns the directory of the runs' home: $GANGRUN_HOME, else gangrun in
// $XDG_STATE_HOME where that is absolute, as its specification demands, else
// ~/.local/state/gangrun. The directory need not exist.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv("GANGRUN_HOME"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("GANGRUN_HOME is %q: %w", dir, err)
		}
		return abs, nil
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gangrun"), nil
	}
	const hint = "set GANGRUN_HOME to a directory in which gangrun may keep its runs"
	switch dir := getenv("HOME"); {
	case dir == "":
		return "", &Error{"there is no place for the run's records: neither GANGRUN_HOME nor XDG_STATE_HOME nor HOME is set", hint, nil}
	case !filepath.IsAbs(dir):
		return "", &Error{fmt.Sprintf("there is no place for the run's records: HOME is %q, which is not an absolute path", dir), hint, nil}
	default:
		return filepath.Join(dir, ".local", "state", "gangrun"), nil
	}
}
