package bridge

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// own returns nil if a directory belongs to this user and nobody else can enter it.
func own(dir string) error {
	var info unix.Stat_t
	if err := unix.Lstat(dir, &info); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR || int(info.Uid) != os.Getuid() || info.Mode&0o077 != 0 {
		return &takenError{dir, info.Mode, info.Uid}
	}
	return nil
}

// takenError is the error if something else is in the place of a directory of this user.
type takenError struct {
	path      string
	mode, uid uint32
}

// Error says what is at the path.
func (e *takenError) Error() string {
	return fmt.Sprintf("%q is not a directory of user %d with mode 0700 (mode %#o, user %d)", e.path, os.Getuid(), e.mode, e.uid)
}

// fix returns the hint for an error of makeDir, or "".
func fix(err error) string {
	var taken []string
	for _, one := range leaves(err) {
		var e *takenError
		if errors.As(one, &e) {
			who := fmt.Sprintf("user %d", e.uid)
			if e.uid != 0 {
				who += " or root"
			}
			taken = append(taken, fmt.Sprintf("%s (only %s can)", e.path, who))
		}
	}
	if len(taken) > 0 {
		return "remove one of these, which are in the way: " + strings.Join(taken, ", ")
	}
	for _, no := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EACCES} {
		if errors.Is(err, no) {
			return "make one of these writable, or free space and inodes in it: /tmp, /var/tmp, /dev/shm"
		}
	}
	return ""
}

// leaves returns the errors that are joined in err.
func leaves(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if many, ok := e.(interface{ Unwrap() []error }); ok {
			var all []error
			for _, one := range many.Unwrap() {
				all = append(all, leaves(one)...)
			}
			return all
		}
	}
	return []error{err}
}
