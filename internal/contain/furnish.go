package contain

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// furnish adds /dev/shm, the sockets of services, directories that are empty for the program, and directories to which
// the program really writes.
func (v *view) furnish() error {
	if err := v.sharedMemory(); err != nil {
		return err
	}
	v.sockets("/run", 3)
	v.sockets("/var/lib/sss/pipes", 1)
	for _, dir := range mps(os.Getenv) {
		_ = unix.Mount(dir, v.at(dir), "", unix.MS_BIND, "") // without the mount, CUDA does without the daemon
	}
	for _, dir := range v.Empty {
		fresh, err := v.next(v.layer, "empty")
		if err == nil {
			err = mirrorIfExists(dir, fresh)
		}
		if err != nil {
			return failed("make", fresh, err)
		}
		if err := v.mountOn(dir, fresh); err != nil {
			return err
		}
	}
	for _, dir := range v.Through {
		if err := v.mountOn(dir, dir); err != nil {
			return err
		}
	}
	return nil
}

// mountOn shows the directory from of the host at the path dir.
func (v *view) mountOn(dir, from string) error {
	to := v.at(dir)
	if err := os.MkdirAll(to, 0o777); err != nil {
		return failed("make", dir, err)
	}
	return failed("bind", dir, unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""))
}

// mirrorIfExists gives a directory the owner and mode of another directory. If that directory does not exist, it leaves
// the usual mode of a new directory.
func mirrorIfExists(from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return nil
	}
	return mirror(from, to)
}

// sharedMemory covers /dev/shm with a separate layer. It is as large as the host's /dev/shm or the other layer,
// whichever is smaller. Programs see the files that are there. They share what they write only with the other ranks.
func (v *view) sharedMemory() error {
	const dir = "/dev/shm"
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return nil // there is no /dev/shm
	}
	layer, err := v.next(v.layer, "shm")
	if err != nil {
		return failed("make", layer, err)
	}
	options := fmt.Sprintf("size=%d,mode=0755", min(int64(stat.Blocks)*stat.Bsize, v.Room))
	if err := unix.Mount("gangrun", layer, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return failed("mount a tmpfs on", layer, err)
	}
	return v.overlay(layer, dir, v.at(dir))
}

// entriesBound limits how many entries are searched for sockets.
const entriesBound = 2000

// sockets shows the sockets of services in a directory unchanged, because a connection to a socket through an overlay
// does not reach the service. Without these sockets, for instance, users that a service provides would have no names.
func (v *view) sockets(dir string, depth int) {
	left := entriesBound
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil { // the entry cannot be read, or is gone
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(dir, path)
		if e.IsDir() && rel != "." && strings.Count(rel, "/")+1 >= depth {
			return fs.SkipDir
		}
		if e.Type() == fs.ModeSocket {
			_ = unix.Mount(path, v.at(path), "", unix.MS_BIND, "") // fails if the service has gone away
		}
		return nil
	})
}
