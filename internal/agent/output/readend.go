package output

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readEnd reads a pipe or the agent's end of a pseudoterminal. After the read deadline of that file, it returns what is
// still there, at most as much as a large pipe has, and then errCut.
//
// The kernel may report the end of a pseudoterminal (EIO) before its last bytes have reached the reader: on Linux 6.18
// about once in some thousand times. A later read returns them, so that EIO counts only after several reads.
type readEnd struct {
	from *os.File
	conn syscall.RawConn // of from
	busy *atomic.Bool    // set before each read(2), and cleared if that has read nothing yet
	late bool            // the deadline has passed
	rest int             // bytes that were read since
}

// errCut is the error after the read deadline.
var errCut = errors.New("the last writer has not closed its end")

// How many reads in a row have to return EIO, and the pause between them.
const (
	eioReads = 6
	eioPause = time.Millisecond
)

// Read implements io.Reader.
func (r *readEnd) Read(buffer []byte) (n int, err error) {
	for range eioReads {
		if n, err = r.once(buffer); n > 0 || !errors.Is(err, unix.EIO) {
			return n, err
		}
		time.Sleep(eioPause)
	}
	return n, err
}

func (r *readEnd) once(buffer []byte) (n int, err error) {
	if !r.late {
		failed := r.conn.Read(func(fd uintptr) bool {
			n, err = r.read(int(fd), buffer)
			return err != unix.EAGAIN
		})
		if !errors.Is(failed, os.ErrDeadlineExceeded) {
			return end(n, errors.Join(failed, err))
		}
		r.late = true
		if err := r.from.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	if r.rest >= largePipe {
		return 0, errCut
	}
	failed := r.conn.Read(func(fd uintptr) bool {
		n, err = r.read(int(fd), buffer)
		return true // even if the read would have to wait
	})
	if err == unix.EAGAIN {
		err = errCut
	}
	r.rest += n
	return end(n, errors.Join(failed, err))
}

// read calls read(2).
func (r *readEnd) read(fd int, buffer []byte) (n int, err error) {
	r.busy.Store(true)
	for n, err = unix.Read(fd, buffer); err == unix.EINTR; n, err = unix.Read(fd, buffer) {
	}
	if err == unix.EAGAIN {
		r.busy.Store(false)
	}
	return max(0, n), err
}

// end returns io.EOF at the end of the file.
func end(n int, err error) (int, error) {
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}
