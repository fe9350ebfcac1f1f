package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/runclock"
)

// errHeld reports that another process has the flock of a file.
var errHeld = errors.New("held by another process")

// file is an open lock file. Its descriptor is not inherited by children.
type file struct {
	*os.File
	path string
}

// openFile opens the existing file at path. It does not create a file, follow a symbolic
// link, or wait for the other end of a pipe. flag is O_RDONLY or O_RDWR.
func openFile(path string, flag int) (*file, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%q is a symbolic link; have its owner or root remove it", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = made(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &file{File: f, path: path}, nil
}

// made returns an error if the file at path cannot be one that gangrun has created.
func made(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file; have its owner or root remove it", path)
	case info.Mode().Perm() != 0o666:
		return fmt.Errorf("%q has mode %#o, not 0666; have its owner or root remove it when nobody uses it", path, info.Mode().Perm())
	}
	return nil
}

// openOrCreate is like openFile, but creates the file if it does not exist.
func openOrCreate(path string, flag int) (*file, error) {
	for range 10 { // another process may remove the new file
		f, err := openFile(path, flag)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("cannot create %q: %w", path, err)
		}
	}
	return nil, fmt.Errorf("%q is removed again and again", path)
}

// create creates an empty file of mode 0666 at path. The file gets its name only after its
// mode: otherwise, under a narrow umask, another user could fail to open it in between. If
// path exists, create returns fs.ErrExist.
func create(path string) error {
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	if err == nil {
		defer unix.Close(fd)
		if err := unix.Fchmod(fd, 0o666); err != nil {
			return err
		}
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	// A file system without O_TMPFILE, or no /proc.
	temp := filepath.Join(dir, ".gangrun."+rand.Text()+".tmp")
	f, err := os.OpenFile(temp, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	defer os.Remove(temp)
	if err := f.Chmod(0o666); err != nil {
		return err
	}
	// A rename, unlike a link, leaves no second name if this process is killed.
	return unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
}

// flock takes the lock how (LOCK_EX or LOCK_SH). It does not wait: it returns errHeld if
// another process has the lock.
func (f *file) flock(how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		case err != nil:
			return fmt.Errorf("cannot lock %q: %w", f.path, err)
		default:
			return nil
		}
	}
}

// drop releases the lock and closes the file. The lock is released even if a process that
// is being started still has a copy of the descriptor.
func (f *file) drop() error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(err, f.Close())
}

// named reports whether path still names this file. It returns false and no error if path
// does not exist, and other errors as they are.
func (f *file) named() (bool, error) {
	at, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(at, info), nil
}

// read returns the content of the file, at most one byte more than a record may have.
func (f *file) read() ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, maxRecord+1))
}

// write replaces the record in the file by v. If that fails, write empties the file. The
// caller must have the lock.
func (f *file) write(v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write the record of %q: %w", f.path, err), f.Truncate(0))
	}
	return nil
}

// lock opens or creates the file at path and takes its lock. It returns errHeld if another
// process has the lock.
func lock(path string, flag int) (*file, error) {
	for range 10 { // another file may have got the name before this process got the lock
		f, err := openOrCreate(path, flag)
		if err != nil {
			return nil, err
		}
		if err := f.flock(unix.LOCK_EX); err != nil {
			f.Close()
			return nil, err
		}
		same, err := f.named()
		if err == nil && same {
			return f, nil
		}
		f.drop()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%q is replaced again and again", path)
}

// patience is how long ordered waits for the order lock of a host. Only the time in which this process runs
// counts. Other processes hold that lock for about a millisecond, but a stopped process may hold it for ever.
const patience = 30 * time.Second

// decision is how long the process with the order lock of a host may decide.
const decision = 10 * time.Second

// ordered calls decide while no other process decides or looks on this host. decide must return when its ctx is
// done, because other processes wait.
func (s *Space) ordered(ctx context.Context, decide func(context.Context) error) error {
	patient := runclock.NewTimer(patience)
	defer patient.Stop()
	for most := time.Millisecond; ; most = min(2*most, 16*time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f, err := lock(s.path(kindOrder, ""), os.O_RDONLY)
		if err == nil {
			ctx, cancel := context.WithTimeoutCause(ctx, decision,
				fmt.Errorf("it takes more than %s to read gangrun's files in %q; remove those that nobody has locked", decision, s.dir))
			defer cancel()
			if err = decide(ctx); err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return errors.Join(err, f.drop())
		}
		if !errors.Is(err, errHeld) {
			return err
		}
		select {
		default:
		case <-patient.C:
			return fmt.Errorf("%q has been locked by another process for %s; look for a stopped one with lslocks or fuser", s.path(kindOrder, ""), patience)
		}
		pause := most/2 + jitter(most)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// owner returns the user ID of a file's owner, for messages.
func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
