package contain

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mirror gives the directory to, which belongs to the caller, the owner and the mode of from. In a user namespace, it
// can give a file only the caller's own IDs. If from belongs to another user, to gets a mode that lets the caller do
// the same as in from.
func mirror(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm() | info.Mode()&(fs.ModeSticky|fs.ModeSetgid)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && !own(stat) {
		if os.Chown(to, int(stat.Uid), int(stat.Gid)) != nil {
			mode = mode&^(0o700|fs.ModeSetgid) | allowed(from)
		}
	}
	return os.Chmod(to, mode)
}

// overflow is the ID that the kernel shows in a user namespace for every ID that the namespace does not have. See
// overflowuid in proc_sys_kernel(5).
const overflow = 65534

// own reports whether a file certainly has the caller's own IDs. If the caller's ID is overflow, files of any user may
// look like the caller's.
func own(stat *syscall.Stat_t) bool {
	return int(stat.Uid) == os.Geteuid() && int(stat.Gid) == os.Getegid() && stat.Uid != overflow && stat.Gid != overflow
}

// allowed returns what the caller may do in a directory, in the form of the rights of the directory's owner.
func allowed(dir string) (mode fs.FileMode) {
	for _, right := range []uint32{unix.R_OK, unix.W_OK, unix.X_OK} {
		if unix.Access(dir, right) == nil {
			mode |= fs.FileMode(right) << 6
		}
	}
	return mode
}

// Limits of the search for directories of other users in which the caller may write.
const (
	adoptDepth   = 5
	adoptEntries = 5000
)

// adopt creates directories of other users in the layer. These are the directories above those in which the program
// works, and directories below them in which the caller may write. overlayfs copies a directory before it writes there.
// In a user namespace, overlayfs cannot give a copy to the owner of the directory (EOVERFLOW). It need not copy a
// directory that is in the layer already.
func (v *view) adopt(lower, upper string) {
	for _, path := range slices.Concat(v.Work, v.Needed) {
		if !within(path, lower) {
			continue
		}
		for dir := lower; dir != path; {
			rest, _, _ := strings.Cut(strings.TrimPrefix(path[len(dir):], "/"), "/")
			dir = filepath.Join(dir, rest)
			v.adoptOne(lower, upper, dir)
		}
	}
	for _, path := range v.Work {
		if within(lower, path) {
			path = lower
		}
		if !within(path, lower) {
			continue
		}
		left := adoptEntries
		_ = filepath.WalkDir(path, func(dir string, e fs.DirEntry, err error) error {
			left--
			switch {
			case left < 0:
				return fs.SkipAll
			case err != nil && e != nil && e.IsDir():
				return fs.SkipDir
			case err != nil || !e.IsDir():
				return nil
			case strings.Count(dir[len(path):], "/") > adoptDepth:
				return fs.SkipDir
			case unix.Access(dir, unix.W_OK) == nil:
				v.adoptOne(lower, upper, dir)
			}
			return nil
		})
	}
}

// adoptOne makes a directory in the layer, and the directories above it. It does nothing if the directory belongs to
// the caller.
func (v *view) adoptOne(lower, upper, dir string) {
	var stat syscall.Stat_t
	if syscall.Lstat(dir, &stat) != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFDIR || own(&stat) {
		return
	}
	for i := len(lower); i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' || i == 0 {
			continue
		}
		made := filepath.Join(upper, dir[min(len(lower), i):i])
		if os.Mkdir(made, 0o755) == nil {
			_ = mirror(dir[:i], made) // otherwise the copy fails, as it would have without this
		}
	}
}

// Mixed reports whether the directories in which the program works have files of other users to which the caller may
// write. In a user namespace, the view cannot make these files writable.
func (r Request) Mixed() bool {
	left, mixed := adoptEntries, false
	for _, dir := range r.Work {
		_ = filepath.WalkDir(resolve(dir), func(path string, e fs.DirEntry, err error) error {
			if left--; left < 0 || mixed {
				return fs.SkipAll
			}
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			var stat syscall.Stat_t
			mixed = syscall.Lstat(path, &stat) == nil && !own(&stat) && unix.Access(path, unix.W_OK) == nil
			return nil
		})
	}
	return mixed
}
