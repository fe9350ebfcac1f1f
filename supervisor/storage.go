package supervisor

import (
	"errors"
	"syscall"
)

// StorageError is that a file system keeps the run waiting for too long.
type StorageError struct{ Err error }

// Error says which.
func (e StorageError) Error() string { return e.Err.Error() }

// Unwrap returns what is behind it.
func (e StorageError) Unwrap() error { return e.Err }

// OfStorage reports whether an error is that a file system is full, has lost its
// server's file, or hangs: nobody's internal fault, and it may pass.
func OfStorage(err error) bool {
	return errors.As(err, new(StorageError)) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ESTALE)
}
