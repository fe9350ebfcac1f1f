// Package output writes what ranks print to log files, and reads the log files again.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/remote/bridge"
)

// Sizes of the buffer between a rank and its log file, in bytes. It begins small, because a large
// gang has many streams and most ranks print little. A stream that fills its buffer again and
// again gets a larger one, and in the end a larger pipe.
const (
	firstBuffer = 2 << 10
	largeBuffer = 256 << 10
	largePipe   = 1 << 20
	// fullReads is how many full reads in a row make the buffer four times larger.
	fullReads = 4
)

// keptMarks bounds how many arrival times of a stream are kept.
const keptMarks = 256

// Options describe a stream.
type Options struct {
	Rank    int // RuntimeRank if the output does not come from a rank
	Stderr  bool
	Path    string            // the path of the log file
	Spooled bool              // the log file is in the agent's own directory
	Grew    *notify.Broadcast // notified when the stream grows or ends

	// Seen is called with each piece of output after the piece was written to the log. It is called by the
	// goroutine in which Pump runs.
	Seen func(piece []byte)
	// Stuck is called each time when the log cannot be written.
	Stuck func(error)
	// End is called after Seen was called with the last piece.
	End func()
}

// Stream is one output stream of a rank: a pipe or a pseudoterminal on one side, a log file on the
// other. Its Options do not change.
type Stream struct {
	Options
	from      *os.File // the agent's end of the pipe or pseudoterminal
	log       *os.File
	truncated bool        // not all of it could be read and written; set by the pump
	lost      error       // why what was read could not be written; set by the pump
	busy      atomic.Bool // the pump may have bytes that are not in the log yet

	mu      sync.Mutex
	written int64
	lines   int  // newlines in written
	closed  bool // everything is written
	marks   []mark
}

// mark is the time at which the bytes up to end had arrived.
type mark struct {
	end  int64
	when time.Time
}

// New makes the log file, which must not exist, and calls opener to connect the rank with the
// agent. It returns the rank's end of that connection.
func New(options Options, opener Opener) (*Stream, *os.File, error) {
	log, err := os.OpenFile(options.Path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, err
	}
	if options.Spooled {
		_ = log.Chmod(0o600) // whatever the umask is: bridge.Whole means complete
	}
	ours, theirs, err := opener()
	if err != nil {
		return nil, nil, errors.Join(err, log.Close(), os.Remove(options.Path))
	}
	return &Stream{Options: options, log: log, from: ours}, theirs, nil
}

// NewLog returns a stream without a pipe. The caller writes the log file itself, and calls Grow and Seal.
func NewLog(options Options) *Stream { return &Stream{Options: options} }

// Loss returns why a part of the output could not be written to the log, or nil if all of it was written. It
// must be called after Pump has returned.
func (s *Stream) Loss() error { return s.lost }

// CutInput makes Pump return when the log has what is in the pipe or pseudoterminal now, even if a process keeps the other
// end open.
func (s *Stream) CutInput() error { return s.from.SetReadDeadline(time.Unix(1, 0)) }

// CloseLog closes the log file.
func (s *Stream) CloseLog() error { return s.log.Close() }

// Discard closes a stream that is not used, and removes its log file.
func (s *Stream) Discard() error {
	return errors.Join(s.from.Close(), s.log.Close(), os.Remove(s.Path))
}

// Pump moves bytes from the rank to the log file until the last writer has closed its end. If the log cannot be
// written, Pump waits until it can be written again, so that no byte is lost. The rank then has to wait, too.
// When the channel release is closed, Pump no longer waits.
func (s *Stream) Pump(release <-chan struct{}) {
	defer s.finish()
	conn, err := s.from.SyscallConn()
	if err != nil {
		s.truncated = true
		return
	}
	in := readEnd{from: s.from, conn: conn, busy: &s.busy}
	buffer, full := make([]byte, firstBuffer), 0
	pace := pace{began: time.Now()}
	for {
		n, err := in.Read(buffer)
		if n > 0 && !s.store(buffer[:n], release) {
			s.truncated = true
			return
		}
		s.busy.Store(false)
		if err != nil {
			// EIO is the end of a pseudoterminal: see readEnd.
			s.truncated = err != io.EOF && !errors.Is(err, unix.EIO) // cut off
			return
		}
		if pause := pace.next(time.Now(), n); pause > 0 {
			await(pause, release)
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

// await waits for a moment, or until the channel release is closed.
func await(pause time.Duration, release <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-release:
	}
}

// widen asks for a larger pipe. The stream works without one too.
func (s *Stream) widen() {
	if raw, err := s.from.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, largePipe) })
	}
}

// retryWrite is how long pump waits before it tries a failed write again.
const retryWrite = 500 * time.Millisecond

func (s *Stream) store(piece []byte, release <-chan struct{}) bool {
	for rest := piece; ; {
		n, err := s.log.Write(rest)
		rest = rest[n:]
		if err == nil {
			break
		}
		err = fmt.Errorf("write the log of rank %d: %w", s.Rank, err)
		s.Stuck(err)
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
	s.marks = append(s.marks, mark{s.written, hostclock.Now()})
	s.mu.Unlock()
	s.Grew.Notify()
	s.Seen(piece)
	return true
}

func (s *Stream) finish() {
	_ = s.from.Close()
	s.End()
	s.Seal()
}

// state returns how many bytes are in the log, and whether that is all.
func (s *Stream) state() (written int64, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written, s.closed
}

// Written returns how many bytes have been printed so far.
func (s *Stream) Written() int64 {
	written, _ := s.state()
	return written
}

// unread reports whether there are bytes that have not been read. It uses poll(2), because
// FIONREAD does not count all that a pseudoterminal holds.
func (s *Stream) unread() bool {
	raw, err := s.from.SyscallConn()
	if err != nil {
		return false // closed
	}
	ask := []unix.PollFd{{Events: unix.POLLIN}}
	err = raw.Control(func(fd uintptr) {
		ask[0].Fd = int32(fd)
		_, _ = unix.Poll(ask, 0)
	})
	return err == nil && ask[0].Revents&unix.POLLIN != 0
}

// tail returns at most limit bytes from the end of the log, with their line number and offset.
// They begin with the beginning of a line, if they hold one.
func (s *Stream) tail(limit int64) (text []byte, line int, offset int64, err error) {
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

// when returns the time at which the byte at offset had arrived, exact to one read. For a byte
// older than the kept times it returns the oldest of them.
func (s *Stream) when(offset int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.marks {
		if offset < m.end {
			return m.when
		}
	}
	return time.Time{}
}

// Grow records that the log has n more bytes.
func (s *Stream) Grow(n int) {
	s.mu.Lock()
	s.written += int64(n)
	s.mu.Unlock()
	s.Grew.Notify()
}

// Seal records that the stream has ended. Followers see that at once. If the log is complete and in the
// agent's own directory (Options.Spooled), Seal also changes the permission bits of the log file. A process that
// reads the log after the agent has ended sees by them that nothing is missing.
func (s *Stream) Seal() {
	if s.Spooled && !s.truncated {
		_ = os.Chmod(s.Path, bridge.Whole) // without this mode it counts as truncated
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Grew.Notify()
}

// Last returns when the last byte arrived, or the zero time if none has.
func (s *Stream) Last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.marks) == 0 {
		return time.Time{}
	}
	return s.marks[len(s.marks)-1].when
}
