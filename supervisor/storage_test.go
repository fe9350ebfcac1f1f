package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/exitcode"
)

// TestStorageEnds: a run that a file system has ended may be run again. A failure of gangrun itself is reported
// as such.
func TestStorageEnds(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{StorageError{errors.New("h1 has not answered")}, exitcode.MayPass},
		{fmt.Errorf("x: %w", syscall.ENOSPC), exitcode.MayPass},
		{fmt.Errorf("x: %w", syscall.EDQUOT), exitcode.MayPass},
		{errors.Join(errors.New("x"), syscall.ESTALE), exitcode.MayPass},
		{&fs.PathError{Op: "mkdir", Path: "/runs/r1", Err: syscall.EROFS}, exitcode.MayPass},
		{&fs.PathError{Op: "write", Path: "/runs/r1", Err: syscall.EFBIG}, exitcode.MayPass},
		{&fs.PathError{Op: "write", Path: "/runs/r1", Err: syscall.EIO}, exitcode.MayPass},
		{fmt.Errorf("a terminal: %w", syscall.EIO), exitcode.Internal},
		{errors.New("x"), exitcode.Internal},
		{fmt.Errorf("x: %w", syscall.EACCES), exitcode.Internal},
	} {
		w := newWorld(t)
		w.checker.err = test.err
		w.run(t)
		if *w.report.ExitCode != test.code || !errors.Is(w.err, test.err) {
			t.Errorf("%v: exit code %d, want %d; the error is %v", test.err, *w.report.ExitCode, test.code, w.err)
		}
	}
}

// TestRefusedLogDirectory: if the directory for an attempt's logs cannot be created, this is the cause of the
// attempt, and the report has its hint.
func TestRefusedLogDirectory(t *testing.T) {
	w := newWorld(t)
	w.logDir = func(int) (string, error) {
		return "", &fs.PathError{Op: "mkdir", Path: "/runs/r1/attempts/1", Err: syscall.ENOSPC}
	}
	w.supervisor.Refusal = func(err error) (job.Cause, bool) {
		return job.Cause{Category: job.DiskFull, Signature: "no-space", Rank: -1, Text: err.Error(), Hint: "make room"}, true
	}
	w.run(t)
	r := w.report
	if c := r.Cause(); c == nil || c.Category != job.DiskFull || !strings.Contains(c.Text, "/runs/r1/attempts/1") {
		t.Errorf("the cause is %+v", c)
	}
	if !strings.HasPrefix(r.Reason, "disk-full: ") || r.Hint != "make room" || *r.ExitCode != exitcode.MayPass {
		t.Errorf("the run ended with %d for %q (hint: %q)", *r.ExitCode, r.Reason, r.Hint)
	}
}
