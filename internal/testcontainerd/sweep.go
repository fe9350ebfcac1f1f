package testcontainerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// parent and prefix begin the directory of every containerd. It is not below t.TempDir: the path of a
// socket is short, and overlayfs needs a disk. It is not in /var: tests of others expect no mounts there.
const parent, prefix = "/srv", "gangrun-ctd-"

// The files of the directory. config has the name of the socket, too.
const (
	lockName   = "lock"
	logName    = "log"
	configName = "config.toml"
	socketName = "containerd.sock"
)

// claim makes a directory for a containerd, with a lock: the directory is in use as long as a process has
// the lock. Before that it removes what tests that were killed have left.
func claim() (dir string, lock *os.File, err error) {
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return "", nil, err
	}
	for _, dir := range dirs {
		lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue // another test makes or removes it now
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = sweep(dir)
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			return "", nil, err
		}
	}
	// A directory has its lock from the moment on at which others can find it.
	made, err := os.MkdirTemp(parent, ".new-"+prefix)
	if err != nil {
		return "", nil, err
	}
	lock, err = os.Create(filepath.Join(made, lockName))
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	dir = filepath.Join(parent, filepath.Base(made)[len(".new-"):])
	return dir, lock, errors.Join(err, os.Rename(made, dir))
}

// sweep kills the containerd of a directory, its shims and its containers, and removes its mounts and
// cgroups, the files of runc and of shims, and the directory.
func sweep(dir string) error {
	left := func() []int { return slices.Concat(withArg(dir, configName), withArg(dir, socketName), contained(dir)) }
	for deadline := time.Now().Add(startLimit); len(left()) > 0; time.Sleep(10 * time.Millisecond) {
		for _, pid := range left() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the processes %d of %s do not end", left(), dir)
		}
	}
	var all error
	for _, path := range mounts(dir) {
		all = errors.Join(all, unix.Unmount(path, unix.MNT_DETACH))
	}
	for _, path := range cgroups(dir) {
		err := unix.Rmdir(path)
		for deadline := time.Now().Add(startLimit); errors.Is(err, unix.EBUSY) && time.Now().Before(deadline); err = unix.Rmdir(path) {
			time.Sleep(10 * time.Millisecond) // the kernel has not yet removed the last process
		}
		all = errors.Join(all, err)
	}
	for _, path := range slices.Concat(runcStates(dir), shimSockets(dir)) {
		all = errors.Join(all, os.RemoveAll(path))
	}
	if all != nil {
		return all
	}
	return os.RemoveAll(dir) // with the log that the others need
}
