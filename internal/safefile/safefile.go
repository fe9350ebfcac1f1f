// Package safefile opens regular files at paths where there may be something else, such as a
// FIFO or a device. Opening a FIFO waits for a writer, perhaps forever, and reading a device
// such as /dev/zero never ends. This package refuses both, and limits how much it reads.
package safefile

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// KindError is the error if a path does not name a regular file.
type KindError struct {
	Path string
	Mode fs.FileMode
}

// Error returns the path and the kind of the file.
func (e *KindError) Error() string {
	return fmt.Sprintf("%q is %s, not a regular file", e.Path, Kind(e.Mode))
}

// Hint returns what to do about it.
func (e *KindError) Hint() string { return "see what has put it there, and remove it or move it away" }

// Kind returns, for the mode of a file, the kind of the file in words, with an article, as in
// "a FIFO".
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeCharDevice != 0:
		return "a character device"
	case mode&fs.ModeDevice != 0:
		return "a block device"
	}
	return "a special file"
}

// SizeError is the error if a file is larger than the limit.
type SizeError struct {
	Path  string
	Limit int64
}

// Error returns the path and the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%q is larger than %d bytes", e.Path, e.Limit)
}

// Hint says what to do about it.
func (e *SizeError) Hint() string { return "see what has written to it, and move it away" }

// Open opens the regular file at path for reading, as os.Open does. It never waits.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile opens the regular file at path, as os.OpenFile does. It never waits. If path does
// not name a regular file, the error is a KindError.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	// Opening a device can have effects of its own, and a FIFO that is opened lets its
	// writers go on, so the kind of file is checked first.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &KindError{path, info.Mode()}
	}
	file, err := os.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &KindError{path, info.Mode()}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// ReadFile returns the content of the regular file at path. The error is a SizeError
// if it has more than limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, &SizeError{path, limit}
	}
	return text, err
}
