package box

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/container"
)

// scratch are the directories that an agent makes for one container.
type scratch struct {
	own    string // the directory that the container sees as dirInside
	memory string // a directory in memory, for discarded changes; empty until it is needed
	locks  []*os.File
	made   int // number of directories made in memory
}

// Prefixes of the names of these directories.
const (
	dirPrefix    = "gangrun-box-"
	memoryPrefix = "gangrun-layers-"
)

// newScratch makes the directory own, below the first directory for temporary files that can be used.
func newScratch() (*scratch, error) {
	var errs []error
	for _, in := range append([]string{os.TempDir(), "/tmp"}, tempfiles.Fallbacks...) {
		lock, err := tempfiles.LockedDir(in, dirPrefix)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s := &scratch{own: lock.Name(), locks: []*os.File{lock}}
		// Root in the container, or another user, must be able to reach the socket. The file is the place where the
		// program is mounted.
		if err := errors.Join(os.Chmod(s.own, 0o755), os.WriteFile(filepath.Join(s.own, filepath.Base(program)), nil, 0o755)); err != nil {
			s.remove()
			return nil, err
		}
		return s, nil
	}
	return nil, errors.Join(errs...)
}

// listen listens on the socket to which the first process of the container connects.
func (s *scratch) listen() (*net.UnixListener, error) {
	// The path of a socket is at most 107 bytes long.
	path := fmt.Sprintf("/proc/self/fd/%d/%s", s.locks[0].Fd(), filepath.Base(socket))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the socket file is removed with the directory
	return l, os.Chmod(filepath.Join(s.own, filepath.Base(socket)), 0o666)
}

// remove removes the directories.
func (s *scratch) remove() {
	for _, dir := range []string{s.own, s.memory} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	for _, lock := range s.locks {
		_ = lock.Close()
	}
}

// layer makes a directory in memory.
func (s *scratch) layer() (string, error) {
	if s.memory == "" {
		lock, err := tempfiles.LockedDir(tempfiles.SharedDir, memoryPrefix)
		if err != nil {
			return "", err
		}
		s.memory, s.locks = lock.Name(), append(s.locks, lock)
	}
	s.made++
	dir := filepath.Join(s.memory, fmt.Sprint(s.made))
	return dir, os.Mkdir(dir, 0o755)
}

// mountError is the error if a mount that the user has named is not possible.
type mountError struct {
	mount job.Mount
	err   error
}

func (e *mountError) Error() string { return fmt.Sprintf("cannot mount %s: %v", e.mount, e.err) }

// mounts returns the mounts of a container, parents before children. mounts makes the checkpoint directory if it is
// missing. logs is the directory for the output of ranks.
func (s *scratch) mounts(want job.Box, logs string) (all []container.Mount, err error) {
	for _, m := range want.Mounts {
		if m.Target == want.Empty && want.Discard {
			continue
		}
		info, err := os.Stat(m.Source)
		if m.Auto && m.Write && errors.Is(err, os.ErrNotExist) {
			if err = os.MkdirAll(m.Source, 0o755); err == nil {
				info, err = os.Stat(m.Source)
			}
		}
		switch {
		case err != nil && m.Auto:
			continue // the preflight reports this error
		case err != nil:
			return nil, &mountError{m, err}
		}
		to := container.Mount{Source: m.Source, Target: m.Target, Write: m.Write}
		if want.Discard && m.Write {
			if to.Write = info.IsDir(); to.Write { // a mounted file stays read-only
				if to.Layer, err = s.layer(); err != nil {
					return nil, err
				}
			}
		}
		all = append(all, to)
	}
	if want.Empty != "" && want.Discard {
		dir, err := s.layer()
		if err == nil {
			err = os.Chmod(dir, 0o777) // ranks may have another user; on the host, only this user can get here
		}
		if err != nil {
			return nil, err
		}
		all = append(all, container.Mount{Source: dir, Target: want.Empty, Write: true})
	}
	if logs != "" {
		all = append(all, container.Mount{Source: logs, Target: logs, Write: true})
	}
	slices.SortStableFunc(all, func(a, b container.Mount) int {
		return strings.Count(strings.TrimSuffix(a.Target, "/"), "/") - strings.Count(strings.TrimSuffix(b.Target, "/"), "/")
	})
	for i, m := range all {
		if err := placeable(m, all[:i]); err != nil {
			return nil, &mountError{job.Mount{Source: m.Source, Target: m.Target, Write: m.Write}, err}
		}
	}
	return all, nil
}

// placeable returns an error if a mount is inside a read-only mount that has nothing at the target of the inner mount.
// before has the mounts that come before m.
func placeable(m container.Mount, before []container.Mount) error {
	for _, around := range slices.Backward(before) {
		below, err := filepath.Rel(around.Target, m.Target)
		if err != nil || below == "." || !filepath.IsLocal(below) {
			continue
		}
		at := filepath.Join(around.Source, below)
		if _, err := os.Lstat(at); around.Write || err == nil {
			return nil
		}
		return fmt.Errorf("%s does not exist, and the mount around it, %s, is read-only", at, around.Target)
	}
	return nil
}
