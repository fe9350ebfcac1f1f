package supervisor

import (
	"errors"
	"io/fs"
	"syscall"
)

// StorageError is that a file system keeps the run waiting for too long.
type StorageError struct{ Err error }

// Error says which.
func (e StorageError) Error() string { return e.Err.Error() }

// Unwrap returns what is behind it.
func (e StorageError) Unwrap() error { return e.Err }

// OfStorage reports whether an error is that a file system is full or read-only, that a
// file on it may not grow or cannot be read or written, or that it hangs: no fault of
// gangrun, and it may pass.
func OfStorage(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE} {
		if errors.Is(err, full) {
			return true
		}
	}
	file := errors.As(err, new(*fs.PathError)) // else it may be a terminal's
	for _, refused := range []error{syscall.EROFS, syscall.EFBIG, syscall.EIO} {
		if file && errors.Is(err, refused) {
			return true
		}
	}
	return errors.As(err, new(StorageError))
}
