package home

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gangrun/gangrun/internal/safefile"
)

// DirLock marks a directory that a run uses. The controllers of other runs in the same home see the mark. The lock does
// not prevent anybody from using the directory.
type DirLock struct{ file *os.File }

// LockDir locks a directory for a run. If another run has locked the directory, LockDir returns the ID of that run, and
// no lock. The lock is a file in the home, so that LockDir needs neither the directory nor its file system.
func LockDir(home, dir, run string) (lock *DirLock, other string, err error) {
	sum := sha256.Sum256([]byte(filepath.Clean(dir)))
	locks := filepath.Join(home, "dirs")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		return nil, "", err
	}
	file, err := safefile.OpenFile(filepath.Join(locks, hex.EncodeToString(sum[:16])), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		id, err := io.ReadAll(io.LimitReader(file, maxClaim))
		return nil, string(id), errors.Join(err, file.Close())
	}
	if err == nil {
		err = replace(file, []byte(run))
	}
	if err != nil {
		return nil, "", errors.Join(err, file.Close())
	}
	return &DirLock{file}, "", nil
}

// Close releases the lock. A nil DirLock has none.
func (l *DirLock) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
