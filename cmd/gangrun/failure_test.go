package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/supervisor"
)

// TestTellStorage checks the exit code and the hint if a file system refuses an operation or does not answer. Such a
// problem may pass, but gangrun must still give the hint.
func TestTellStorage(t *testing.T) {
	full := fmt.Errorf("write x: %w", syscall.ENOSPC)
	late := fmt.Errorf("survey host h1: %w", &launcher.LookError{Host: "h1", What: "the directory \"/w\""})
	for _, test := range []struct {
		err  error
		code int
	}{
		{full, failure.CodeMayPass},
		{&failure.Error{Code: failure.CodeInternal, Err: full, Hint: "make room"}, failure.CodeMayPass},
		{&failure.Error{Code: failure.CodeUsage, Err: full, Hint: "make room"}, failure.CodeUsage},
		{supervisor.StorageError{Err: late}, failure.CodeMayPass},
		{errors.New("x"), failure.CodeInternal},
	} {
		var said bytes.Buffer
		if code := tell(test.err, &said); code != test.code {
			t.Errorf("%v: exit code %d, want %d", test.err, code, test.code)
		}
		if hinted := strings.Contains(said.String(), "gangrun: hint: make room\n"); hinted != errors.As(test.err, new(*failure.Error)) {
			t.Errorf("%v: said %q", test.err, said.String())
		}
	}
}
