// Package pathfact finds out what is at a path, and whether it can be used.
package pathfact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// In returns path in its shortest form. A path that is not absolute is relative to dir.
func In(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Of finds out whether path exists, whether it is a directory, and its size.
func Of(path string) job.PathFact {
	fact := job.PathFact{Path: path}
	info, err := os.Stat(path)
	if err != nil {
		Fail(&fact, err)
		return fact
	}
	fact.Dir, fact.Bytes = info.IsDir(), info.Size()
	return fact
}

// Readable does what Of does, and also tries to read the first byte of a file, or the first entry
// of a directory.
func Readable(path string) job.PathFact {
	fact := Of(path)
	if fact.Kind != job.ErrorNone {
		return fact
	}
	// With O_NONBLOCK, opening a FIFO does not wait for a writer.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		Fail(&fact, err)
		return fact
	}
	defer file.Close()
	if fact.Dir {
		names, err := file.Readdirnames(1)
		if err != nil && err != io.EOF {
			Fail(&fact, err)
		}
		fact.Empty = len(names) == 0 && fact.Kind == job.ErrorNone
		return fact
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		// A file of /proc has content although its size is 0.
		_, err := file.Read(make([]byte, 1))
		fact.Empty = err == io.EOF
		if err != nil && err != io.EOF {
			Fail(&fact, err)
		}
	}
	return fact
}

// changedEntries limits how many entries of a directory Input looks at to find out when they were changed.
const changedEntries = 1000

// Input does what Readable does, and also finds out the time of the last change: of the file or, for a
// directory, of the directory and its first entries.
func Input(path string) job.PathFact {
	fact := Readable(path)
	info, err := os.Stat(path)
	if err != nil {
		return fact
	}
	fact.Changed = info.ModTime()
	if !fact.Dir {
		return fact
	}
	dir, err := os.Open(path)
	if err != nil {
		return fact
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(changedEntries) // Readable has reported errors
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(fact.Changed) {
			fact.Changed = info.ModTime()
		}
	}
	return fact
}

// Fail records err in fact.
func Fail(fact *job.PathFact, err error) { fact.Kind, fact.Error = Kind(err), Reason(err) }

// Reason returns the text of the innermost error in err. This text does not have the path.
func Reason(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// Kind returns the kind of an error of the file system.
func Kind(err error) job.ErrorKind {
	switch {
	case err == nil:
		return job.ErrorNone
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return job.ErrorMissing
	case errors.Is(err, fs.ErrPermission):
		return job.ErrorPermission
	case errors.Is(err, unix.EROFS):
		return job.ErrorReadOnly
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return job.ErrorFull
	case errors.Is(err, unix.EISDIR):
		return job.ErrorKindOf
	default:
		return job.ErrorIO
	}
}

// Hash returns the SHA-256 of a file's content, in hexadecimal.
func Hash(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum, buffer := sha256.New(), make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := file.Read(buffer)
		sum.Write(buffer[:n])
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}
