package sshconfig

import "fmt"

// Error is the error if ssh_config, a file that it names, or the name of a host cannot be used.
type Error struct {
	File string // empty if the fault is in no file
	Line int    // 0 if the fault is in no single line
	Text string
	Fix  string // what to do about it
}

// Error returns the file and line, and what is wrong there.
func (e *Error) Error() string {
	if e.File == "" {
		return e.Text
	}
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// Hint says what to do next.
func (e *Error) Hint() string { return e.Fix }

// Lasting returns true, because it does not help to try again later.
func (e *Error) Lasting() bool { return true }
