package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// RemovedError is that a run's directory is gone. It is an fs.ErrNotExist.
type RemovedError struct{ Run Run }

// Error names the run and its directory.
func (e *RemovedError) Error() string {
	return fmt.Sprintf("run %s is gone: its directory %q was removed", e.Run.ID, e.Run.Dir)
}

// Hint says what to type.
func (e *RemovedError) Hint() string { return "gangrun ps lists the runs that there are" }

// Is reports whether target is fs.ErrNotExist.
func (e *RemovedError) Is(target error) bool { return target == fs.ErrNotExist }

// stat looks at the run's directory; the error is a RemovedError where there is none.
func (r Run) stat() (fs.FileInfo, error) {
	info, err := os.Stat(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &RemovedError{r}
	}
	return info, err
}

// Explain returns a RemovedError in place of an error that came of the removal of the
// run's directory, and any other error as it is.
func (r Run) Explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := r.stat(); gone != nil {
			return gone
		}
	}
	return err
}
