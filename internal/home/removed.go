package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// RemovedError is the error if a run's directory was removed. errors.Is reports that it is
// fs.ErrNotExist.
type RemovedError struct{ Run Run }

// Error names the run and its directory.
func (e *RemovedError) Error() string {
	return fmt.Sprintf("run %s is gone: its directory %q was removed", e.Run.ID, e.Run.Dir)
}

// Hint returns what to type next.
func (e *RemovedError) Hint() string { return "gangrun ps lists the runs that there are" }

// Is reports whether target is fs.ErrNotExist.
func (e *RemovedError) Is(target error) bool { return target == fs.ErrNotExist }

// stat returns the run's directory. If there is none, the error is a RemovedError.
func (r Run) stat() (fs.FileInfo, error) {
	info, err := os.Stat(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &RemovedError{r}
	}
	return info, err
}

// Explain returns a RemovedError if the removal of the run's directory has caused err. Otherwise it returns err.
func (r Run) Explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := r.stat(); gone != nil {
			return gone
		}
	}
	return err
}
