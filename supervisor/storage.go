package supervisor

import (
	"errors"
	"io/fs"
	"syscall"
)

// StorageError reports that a file system did not answer in time.
type StorageError struct{ Err error }

// Error returns the text of Err.
func (e StorageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e StorageError) Unwrap() error { return e.Err }

// OfStorage reports whether a file system, and not a fault of gangrun, caused err. The file system may be full,
// may be read-only, or may hang. A file on it may have reached a size limit, or may be unreadable or
// unwritable. After such an error, it may help to run the job again.
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
