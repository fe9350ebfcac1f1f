package tempfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockTries limits how often LockedDir makes a directory, if other agents remove it.
const lockTries = 100

// LockedDir makes a directory below parent, and locks it. Before the directory is locked, another
// agent may take it for the directory of a dead agent and remove it. In that case LockedDir makes
// another directory. The directory stays locked until the caller closes it.
func LockedDir(parent, prefix string) (*os.File, error) {
	for range lockTries {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		dir, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_SH); err != nil {
			return nil, errors.Join(err, dir.Close())
		}
		if _, err := os.Lstat(path); err == nil {
			return dir, nil
		}
		_ = dir.Close()
	}
	return nil, fmt.Errorf("each directory that was made below %s was removed by another process", parent)
}

// RemoveUnlocked removes the directories of agents that were killed. These are the directories whose names
// begin with prefix and that nobody has locked. It returns how many directories it has removed.
func RemoveUnlocked(prefix string, remove func(path string) error) (removed int) {
	for _, in := range append([]string{os.TempDir(), "/tmp"}, Fallbacks...) {
		dirs, _ := filepath.Glob(filepath.Join(in, prefix+"*"))
		for _, path := range dirs {
			dir, err := os.Open(path)
			if err != nil {
				continue // the directory belongs to somebody else
			}
			if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
				if remove(path) == nil {
					removed++
				}
			}
			_ = dir.Close()
		}
	}
	return removed
}
