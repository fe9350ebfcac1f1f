package probe

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxPipe is the maximum number of bytes that are read from a pipe after its deadline. A pipe of Linux has 16
// pages of up to 64 KiB.
const maxPipe = 1 << 20

// outlet is the reading end of a pipe to which a child writes. It must have only one reader. After its
// deadline, it returns what is left in the pipe, and then io.EOF. So a reader that was suspended until after
// the deadline loses nothing that the child has written.
type outlet struct {
	file *os.File
	late bool
	read int // bytes that were read since then
}

// Outlet returns a reader of pipe. The pipe must have no other reader. After the read deadline of the pipe,
// Read returns the data that is still in the pipe, at most 1 MiB, and after it io.EOF.
func Outlet(pipe *os.File) io.Reader { return &outlet{file: pipe} }

// SetReadDeadline calls os.File.SetReadDeadline.
func (o *outlet) SetReadDeadline(at time.Time) error { return o.file.SetReadDeadline(at) }

// Close closes the pipe.
func (o *outlet) Close() error { return o.file.Close() }

// Read implements io.Reader.
func (o *outlet) Read(b []byte) (int, error) {
	if !o.late {
		n, err := o.file.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.late = true
		if err := o.file.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	if failed := conn.Read(func(fd uintptr) bool {
		for n, err = unix.Read(int(fd), b[:min(len(b), maxPipe-o.read)]); errors.Is(err, unix.EINTR); {
			n, err = unix.Read(int(fd), b[:min(len(b), maxPipe-o.read)])
		}
		return true // even if the read would have to wait
	}); failed != nil {
		return 0, failed
	}
	if n <= 0 {
		return 0, io.EOF
	}
	o.read += n
	return n, nil
}
