package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Sizes of the buffer between a rank and its log file, in bytes. A stream that
// fills it again and again gets a larger one, and in the end a pipe to match:
// most ranks say little, and a large gang has many.
const (
	firstBuffer = 2 << 10
	largeBuffer = 256 << 10
	largePipe   = 1 << 20
	// fullReads is how many full reads in a row make the buffer four times as
	// large.
	fullReads = 4
)

// keptMarks bounds the arrival times that are remembered of a stream.
const keptMarks = 256

// stream is one output stream of one rank: a pipe on one side, a log file on
// the other.
type stream struct {
	rank   int
	stderr bool
	path   string
	pipe   *os.File // read end
	log    *os.File
	// seen is called with each piece after it has been written.
	seen func(piece []byte)
	// stuck is called when the log file cannot be written, at every try.
	stuck func(error)
	// end is called when the last piece has been seen.
	end func()
	// spooled says that the log is in the agent's own directory.
	spooled bool
	// What follows is the pump's.
	torn bool  // not all of it could be read and written
	lost error // why what was read could not be written

	bell *bell // rung when written or closed change

	mu      sync.Mutex
	written int64
	lines   int  // newlines in written
	closed  bool // everything is written
	marks   []mark
}

// mark says when the bytes up to end had arrived.
type mark struct {
	end  int64
	when time.Time
}

// newStream makes the log file, which must not exist, and the pipe. It returns
// the pipe's write end for the rank.
func newStream(rank int, stderr bool, path string) (*stream, *os.File, error) {
	log, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, err
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("pipe2", err), log.Close(), os.Remove(path))
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // only our end
		return nil, nil, errors.Join(err, log.Close(), os.Remove(path), unix.Close(fds[0]), unix.Close(fds[1]))
	}
	s := &stream{
		rank: rank, stderr: stderr, path: path, log: log,
		pipe: os.NewFile(uintptr(fds[0]), "pipe"),
	}
	return s, os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// pump moves bytes from the pipe to the log file until the last writer has
// closed the pipe. When the log cannot be written it waits, and the rank with
// it, rather than lose a byte; release ends such a wait.
func (s *stream) pump(release <-chan struct{}) {
	defer s.finish()
	buffer, full := make([]byte, firstBuffer), 0
	for {
		n, err := s.pipe.Read(buffer)
		if n > 0 && !s.store(buffer[:n], release) {
			s.torn = true
			return
		}
		if err != nil {
			s.torn = err != io.EOF // closed by force
			return
		}
		if n < len(buffer) {
			full = 0
		} else if full++; full == fullReads && len(buffer) < largeBuffer {
			buffer, full = make([]byte, min(4*len(buffer), largeBuffer)), 0
			if len(buffer) == largeBuffer {
				s.widen()
			}
		}
	}
}

// widen asks for a larger pipe; where the kernel refuses, the small one works.
func (s *stream) widen() {
	if raw, err := s.pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, largePipe) })
	}
}

// retryWrite is how long pump waits before it tries a failed write again.
const retryWrite = 500 * time.Millisecond

func (s *stream) store(piece []byte, release <-chan struct{}) bool {
	for rest := piece; ; {
		n, err := s.log.Write(rest)
		rest = rest[n:]
		if err == nil {
			break
		}
		err = fmt.Errorf("write the log of rank %d: %w", s.rank, err)
		s.stuck(err)
		select {
		case <-time.After(retryWrite):
		case <-release:
			s.lost = err
			return false
		}
	}
	s.mu.Lock()
	s.written += int64(len(piece))
	s.lines += bytes.Count(piece, []byte{'\n'})
	if len(s.marks) == keptMarks {
		s.marks = append(s.marks[:0], s.marks[keptMarks/2:]...)
	}
	s.marks = append(s.marks, mark{s.written, now()})
	s.mu.Unlock()
	s.bell.ring()
	s.seen(piece)
	return true
}

func (s *stream) finish() {
	_ = s.pipe.Close()
	s.end()
	s.seal()
}

// state returns how many bytes are in the log, and whether that is all.
func (s *stream) state() (written int64, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written, s.closed
}

// unread reports whether the pipe holds bytes that have not been read.
func (s *stream) unread() bool {
	raw, err := s.pipe.SyscallConn()
	if err != nil {
		return false // closed
	}
	n := 0
	err = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && n > 0
}

// tail returns at most limit bytes from the end of the log, from the beginning
// of a line where there is one, with the number of that line and the offset.
func (s *stream) tail(limit int64) (text []byte, line int, offset int64, err error) {
	s.mu.Lock()
	written, lines := s.written, s.lines
	s.mu.Unlock()
	offset = max(0, written-limit-1) // one more, which may be a line's end
	text = make([]byte, written-offset)
	if _, err := s.log.ReadAt(text, offset); err != nil && err != io.EOF {
		return nil, 0, 0, err
	}
	if int64(len(text)) > limit {
		skip := bytes.IndexByte(text, '\n') + 1
		if skip == 0 || skip == len(text) {
			skip = 1 // no line begins here
		}
		offset, text = offset+int64(skip), text[skip:]
	}
	return text, lines - bytes.Count(text, []byte{'\n'}) + 1, offset, nil
}

// when returns the time at which the byte at offset had arrived: exact to one
// read, and the oldest remembered time for older bytes.
func (s *stream) when(offset int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.marks {
		if offset < m.end {
			return m.when
		}
	}
	return time.Time{}
}
