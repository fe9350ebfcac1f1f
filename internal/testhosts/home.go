package testhosts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// root is where beds have their directories. It is not below /tmp, of which
// each host has its own.
const root = "/var/tmp/gangrun-testhosts"

// claim makes a directory for a bed, with a lock that says that the bed lives
// for as long as anybody has the file open. It first removes what is left of
// beds that do not.
func claim() (dir string, lock *os.File, err error) {
	if err := os.MkdirAll(root, 0o711); err != nil {
		return "", nil, err
	}
	all, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer all.Close()
	if err := syscall.Flock(int(all.Fd()), syscall.LOCK_EX); err != nil {
		return "", nil, err
	}
	if err := sweep(); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(root, "bed"); err != nil {
		return "", nil, err
	}
	lock, err = os.Create(filepath.Join(dir, "lock"))
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o711), syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	}
	return dir, lock, err
}

// sweep removes what dead beds have left.
func sweep() error {
	dirs, err := filepath.Glob(filepath.Join(root, "bed*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			err = clean(dir)
		} else if err == nil {
			if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				err = clean(dir)
			}
			lock.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clean removes what a bed has left. Its keeper, or that of a bed's owner, may be at it
// as well.
func clean(dir string) error {
	_, err := output(exec.Command("bash", "-c", keepScript, "keeper", "clean", dir))
	if _, gone := os.Stat(dir); errors.Is(gone, os.ErrNotExist) {
		return nil
	}
	return err
}
