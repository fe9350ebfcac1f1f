package supervisor

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// TestStorageEnds: a run that a file system has ended may be run again, one that
// gangrun has failed is gangrun's fault.
func TestStorageEnds(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{StorageError{errors.New("h1 has not answered")}, ExitMayPass},
		{fmt.Errorf("x: %w", syscall.ENOSPC), ExitMayPass},
		{fmt.Errorf("x: %w", syscall.EDQUOT), ExitMayPass},
		{errors.Join(errors.New("x"), syscall.ESTALE), ExitMayPass},
		{errors.New("x"), ExitInternal},
		{fmt.Errorf("x: %w", syscall.EACCES), ExitInternal},
	} {
		w := newWorld(t)
		w.checker.err = test.err
		w.run(t)
		if *w.report.ExitCode != test.code || !errors.Is(w.err, test.err) {
			t.Errorf("%v: exit code %d, want %d; the error is %v", test.err, *w.report.ExitCode, test.code, w.err)
		}
	}
}
