package kernellog

import (
	"errors"
	"iter"
	"strings"

	"golang.org/x/sys/unix"
)

// Log reads the texts of the kernel's log, /dev/kmsg. It has no texts if this user may not read the log.
type Log struct {
	// fd is the descriptor of the log, or -1 if this user may not read it.
	fd int
}

// OpenLog opens the kernel's log. The Log begins at the present end of that log.
func OpenLog() *Log {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return &Log{-1}
	}
	if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		_ = unix.Close(fd)
		return &Log{-1}
	}
	return &Log{fd}
}

// Readable reports whether this user may read the kernel's log.
func (l *Log) Readable() bool { return l.fd >= 0 }

// Close closes the log.
func (l *Log) Close() {
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
	}
}

// maxRecords bounds how many records one call of New reads, in case that the kernel logs faster
// than they are read.
const maxRecords = 20_000

// New returns what the kernel has logged since the last call of New. It does not wait.
func (l *Log) New() iter.Seq[string] {
	return func(yield func(string) bool) {
		buffer := make([]byte, 8<<10) // a record is at most 1 KiB and its header
		for range maxRecords {
			if l.fd < 0 {
				return
			}
			n, err := unix.Read(l.fd, buffer)
			if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR) {
				continue // records were overwritten; the next read continues after them
			}
			if err != nil || n <= 0 {
				return
			}
			if text, ok := recordText(string(buffer[:n])); ok && !yield(text) {
				return
			}
		}
	}
}

// recordText returns the text of a /dev/kmsg record
// ("priority,sequence,microseconds,flags;text\n KEY=value\n").
func recordText(record string) (string, bool) {
	_, text, ok := strings.Cut(record, ";")
	if !ok {
		return "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text, "\uFFFD"), text != ""
}
