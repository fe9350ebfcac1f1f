// Package flaw defines Flaw, the error for a checkpoint that is not complete. An error in reading a
// checkpoint is not a Flaw.
package flaw

import (
	"errors"
	"fmt"
	"io"
)

// Flaw is the reason why a checkpoint is not complete.
type Flaw string

// Error returns the reason.
func (f Flaw) Error() string { return string(f) }

// New returns a Flaw, formatted as by fmt.Sprintf.
func New(format string, args ...any) error { return Flaw(fmt.Sprintf(format, args...)) }

// Within adds the name of a part of the checkpoint to err if err is a Flaw. It returns other errors as they
// are.
func Within(part string, err error) error {
	var f Flaw
	if errors.As(err, &f) {
		return New("%s: %s", part, string(f))
	}
	return err
}

// Is reports whether err is a Flaw, or wraps one.
func Is(err error) bool {
	var f Flaw
	return errors.As(err, &f)
}

// Truncated returns a Flaw that names part if err says that the file has ended too early. It returns other
// errors as they are.
func Truncated(part string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return New("truncated: it ends within %s", part)
	}
	return err
}

// Short returns at most the first 40 bytes of a text, for a Flaw.
func Short(text string) string { return text[:min(len(text), 40)] }
