package ssh

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A line is the network connection under an SSH connection. It remembers when
// the host was last heard. TCP_USER_TIMEOUT is not set: a Client asks the host
// itself and closes the line of one that is silent, which also notices a host
// that is frozen and whose kernel goes on acknowledging.
type line struct {
	net.Conn
	raw   syscall.RawConn // nil through a jump host
	heard atomic.Int64    // time.Since(start) of the latest read
	start time.Time       // with its monotonic clock
	ended atomic.Bool     // a read has failed
}

func newLine(conn net.Conn) *line {
	l := &line{Conn: conn, start: time.Now()}
	if tcp, ok := conn.(*net.TCPConn); ok {
		l.raw, _ = tcp.SyscallConn() // without it, acknowledgements are only slower
	}
	l.quick()
	return l
}

// quick has the kernel acknowledge at once: Nagle's algorithm in sshd and
// delayed acknowledgements here add up to 40 ms to a first command. The kernel
// forgets the option by itself, so that it is set after each read.
func (l *line) quick() {
	if l.raw != nil {
		_ = l.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
}

// Read reads, and remembers that something was heard.
func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.heard.Store(int64(time.Since(l.start)))
		l.quick()
	}
	if err != nil {
		l.ended.Store(true)
	}
	return n, err
}

// errEnded is why nothing is written to a line that has ended, and nothing else tried.
var errEnded = errors.New("the connection has ended")

// Write writes, unless nothing will be read any more: x/crypto/ssh would wait for ever
// for the answer to a channel that is opened while it ends.
func (l *line) Write(b []byte) (int, error) {
	if l.ended.Load() {
		return 0, errEnded
	}
	return l.Conn.Write(b)
}

// last is when something was heard.
func (l *line) last() time.Time { return l.start.Add(time.Duration(l.heard.Load())) }

// hungUp says whether err is the other side's closing of a connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) || errors.Is(err, errEnded) || strings.Contains(err.Error(), "connection reset by peer")
}
