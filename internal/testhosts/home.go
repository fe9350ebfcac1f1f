package testhosts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// root is the parent of the beds' directories. It is not below /tmp, because each host has its
// own /tmp.
const root = "/var/tmp/gangrun-testhosts"

// claim makes a directory for a bed, with a lock: the bed exists as long as a process has the
// lock open. Before that it removes what dead beds have left.
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

// clean removes what a bed has left. The bed's keeper may remove it at the same time.
func clean(dir string) error {
	_, err := output(exec.Command("bash", "-c", keepScript, "keeper", "clean", dir))
	if _, gone := os.Stat(dir); errors.Is(gone, os.ErrNotExist) {
		return nil
	}
	return err
}
