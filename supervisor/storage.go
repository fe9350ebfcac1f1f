package supervisor

import (
	"errors"
	"io/fs"
	"syscall"
)

// StorageError is the error of a file system that does not answer in time.
type StorageError struct{ Err error }

// Error returns the text of Err.
func (e StorageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e StorageError) Unwrap() error { return e.Err }

// OfStorage reports whether a file system, and not gangrun, caused err: it is full or read-only, it
// hangs, or a file on it may not grow or cannot be read or written. Such an error may pass.
func OfStorage(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE} {
		if errors.Is(err, full) {
			return true
		}
	}
	file := errors.As(err, new(*fs.PathError)) // otherwise it may be the error of a terminal
	for _, refused := range []error{syscall.EROFS, syscall.EFBIG, syscall.EIO} {
		if file && errors.Is(err, refused) {
			return true
		}
	}
	return errors.As(err, new(StorageError))
}
