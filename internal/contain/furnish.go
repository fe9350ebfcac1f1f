package contain

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// furnish adds /dev/shm, the sockets of services, directories that the program finds empty,
// and directories in which it really writes.
func (v *view) furnish() error {
	if err := v.sharedMemory(); err != nil {
		return err
	}
	v.sockets("/run", 3)
	v.sockets("/var/lib/sss/pipes", 1)
	for _, dir := range mps(os.Getenv) {
		_ = unix.Mount(dir, v.at(dir), "", unix.MS_BIND, "") // without it, CUDA does without the daemon
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

// mountOn shows a directory of the host under the name of dir.
func (v *view) mountOn(dir, from string) error {
	to := v.at(dir)
	if err := os.MkdirAll(to, 0o777); err != nil {
		return failed("make", dir, err)
	}
	return failed("bind", dir, unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""))
}

// mirrorIfExists gives a directory the owner and mode of another one. If that does not
// exist, it gives the usual mode of a new directory.
func mirrorIfExists(from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return nil
	}
	return mirror(from, to)
}

// sharedMemory covers /dev/shm with a layer of its own, as large as the host's /dev/shm or
// the other layer, whichever is smaller. Programs see what is there, and share what they
// write only with the other ranks.
func (v *view) sharedMemory() error {
	const dir = "/dev/shm"
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return nil // there is none
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

// entriesBound bounds the entries that are looked at for sockets.
const entriesBound = 2000

// sockets shows the sockets of services in a directory as they are, because a connection to
// a socket through an overlay does not reach the service. Without them, users that a
// service provides would have no names.
func (v *view) sockets(dir string, depth int) {
	left := entriesBound
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil { // it cannot be read, or it is gone
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
			_ = unix.Mount(path, v.at(path), "", unix.MS_BIND, "") // a service that went away meanwhile
		}
		return nil
	})
}
