package contain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// view is a view that is being built.
type view struct {
	Request
	layer string // the directory on which the layer is mounted
	root  string // the root directory of the view, in the layer
	made  int    // number of directories that were made in layers
	// copied is the number of bytes in files that were copied.
	copied int64
}

// Enter builds the view. After that, this process and every process that it starts see the view in
// place of the host's files. The process must be in the namespaces that Attr returns. Enter changes
// nothing outside of these namespaces. An error is an *Error.
func Enter(r Request) error {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/"
	}
	for _, paths := range [][]string{r.Work, r.Needed, r.Empty, r.Through} {
		for i, path := range paths {
			paths[i] = resolve(path)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return failed("make mounts private", "", err)
	}
	mounts, err := visible()
	if err != nil {
		return failed("list the mounts", "", err)
	}
	options := fmt.Sprintf("size=%d,mode=0755", r.Room)
	if err := unix.Mount("gangrun", r.Layer, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return failed("mount a tmpfs on", r.Layer, err)
	}
	v := &view{Request: r, layer: r.Layer, root: filepath.Join(r.Layer, "root")}
	if err := os.Mkdir(v.root, 0o755); err != nil {
		return failed("make", v.root, err)
	}
	steps, err := plan(mounts, r.User, slices.Concat(r.Work, r.Needed), os.ReadDir)
	if err != nil {
		return err
	}
	if steps[0].action == skeleton { // a skeleton is no mount, but the root of a view must be a mount
		if err := unix.Mount(v.root, v.root, "", unix.MS_BIND, ""); err != nil {
			return failed("bind", v.root, err)
		}
	}
	for _, s := range steps {
		if err := v.do(s); err != nil {
			return err
		}
	}
	if err := v.furnish(); err != nil {
		return err
	}
	return v.enter(cwd)
}

// resolve returns a path without symbolic links, as far as the path exists. It also makes an
// automounter mount the file system of the path.
func resolve(path string) string {
	for at, rest := filepath.Clean(path), ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		_, _ = os.Stat(at + "/.")
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == "/" || at == "." {
			return path
		}
	}
}

// at returns the path that a path of the host has in the view, while the view is being built.
func (v *view) at(path string) string { return filepath.Join(v.root, path) }

// next makes a new directory in a layer, and returns its path.
func (v *view) next(layer, kind string) (string, error) {
	v.made++
	dir := filepath.Join(layer, kind+strconv.Itoa(v.made))
	return dir, os.Mkdir(dir, 0o755)
}

// do carries out one step.
func (v *view) do(s step) error {
	to := v.at(s.path)
	info, err := os.Lstat(s.path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || !v.needs(s.path) {
			return nil // the path is gone, or no process can access it
		}
		return failed("look at", s.path, err)
	}
	switch s.action {
	case skeleton:
		if err := os.MkdirAll(to, 0o755); err != nil {
			return failed("make", to, err)
		}
		return failed("give rights to", s.path, mirror(s.path, to))
	case link:
		target, err := os.Readlink(s.path)
		if err == nil {
			err = os.Symlink(target, to)
		}
		return failed("copy the symbolic link", s.path, err)
	case file:
		return v.file(s.path, to, info)
	case bind, bindAll:
		if err := v.place(to, info); err != nil {
			return failed("make", to, err)
		}
		flags := uintptr(unix.MS_BIND)
		if s.action == bindAll {
			flags |= unix.MS_REC
		}
		return v.tolerate(s.path, failed("bind", s.path, unix.Mount(s.path, to, "", flags, "")))
	}
	if err := v.place(to, info); err != nil {
		return failed("make", to, err)
	}
	err = v.overlay(v.layer, s.path, to)
	if err == nil || v.needs(s.path) {
		return err
	}
	return v.readonly(s.path, to)
}

// needs reports whether a path of the request is on a file system, or whether the program works in
// a directory above that file system.
func (v *view) needs(point string) bool {
	return slices.ContainsFunc(v.Needed, func(path string) bool { return within(path, point) }) ||
		slices.ContainsFunc(v.Work, func(path string) bool { return within(path, point) || within(point, path) })
}

// tolerate returns nil if err is about a file system on which the program does not work. Otherwise, it returns err.
func (v *view) tolerate(path string, err error) error {
	if err != nil && v.needs(path) {
		return err
	}
	return nil
}

// place makes the file or directory on which something will be mounted, if it is missing.
func (v *view) place(to string, info os.FileInfo) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if info.IsDir() {
		return os.MkdirAll(to, 0o755)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// overlay shows a directory of the host in the view, with a layer over it. It names the directories by their
// descriptors, so that it need not escape characters in their names.
func (v *view) overlay(layer, from, to string) error {
	upper, err := v.next(layer, "up")
	if err != nil {
		return failed("make", upper, err)
	}
	work, err := v.next(layer, "work")
	if err != nil {
		return failed("make", work, err)
	}
	if err := mirror(from, upper); err != nil {
		return failed("give rights to", upper, err)
	}
	if v.User {
		v.adopt(from, upper)
	}
	var fds [3]int
	for i, dir := range []string{from, upper, work} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return failed("open", dir, err)
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	options := fmt.Sprintf("lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", fds[0], fds[1], fds[2])
	if v.User {
		options += ",userxattr" // Linux 5.11
	} else {
		options += ",redirect_dir=on" // otherwise directories could not be renamed
	}
	return failed("mount an overlay over", from, unix.Mount("gangrun", to, "overlay", 0, options))
}

// readonly shows a directory of the host unchanged. Nobody can write in it.
func (v *view) readonly(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return nil // the view has an empty directory there
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return failed("make read-only", from, unix.MountSetattr(unix.AT_FDCWD, to, 0, &attr)) // Linux 5.12
}

// Limits for copies of single files. All copies together may take 1/copyShare of the layer's room. One copy may have
// copyLargest bytes.
const (
	copyShare   = 8
	copyLargest = 4 << 20
)

// file shows one file of the host in the view. It shows a copy of the file in a new directory, because a mounted file
// cannot be removed or replaced. If there is too little room, or if another file is in that place already, it mounts
// the file itself, read-only.
func (v *view) file(from, to string, info os.FileInfo) error {
	if _, err := os.Lstat(to); err != nil && info.Mode().IsRegular() && info.Size() <= copyLargest && v.copied+info.Size() <= v.Room/copyShare && copyFile(from, to, info) == nil {
		v.copied += info.Size()
		return nil
	}
	if err := v.place(to, info); err != nil {
		return failed("make", to, err)
	}
	if info.Mode().IsRegular() && unix.Access(from, unix.W_OK) == nil {
		return v.readonly(from, to)
	}
	return v.tolerate(from, failed("bind", from, unix.Mount(from, to, "", unix.MS_BIND, "")))
}

func copyFile(from, to string, info os.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close(), os.Chmod(to, info.Mode().Perm()), os.Chtimes(to, info.ModTime(), info.ModTime())); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// enter makes the view the root directory of this process.
func (v *view) enter(cwd string) error {
	if err := os.Chdir(v.root); err != nil {
		return failed("enter", v.root, err)
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old root is then mounted over the new root
		return failed("change the root directory", "", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return failed("leave the old root directory", "", err)
	}
	if os.Chdir(cwd) != nil {
		return failed("enter", "/", os.Chdir("/"))
	}
	return nil
}
