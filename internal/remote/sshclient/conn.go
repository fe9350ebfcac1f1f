package sshclient

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

// conn is the network connection below an SSH connection. It records when the host last sent something. It does not set
// TCP_USER_TIMEOUT, because a Client itself closes the connection to a silent host. Thus the Client also notices a host
// whose programs are frozen, while its kernel still acknowledges data.
type conn struct {
	net.Conn
	raw      syscall.RawConn // nil through a jump host
	start    time.Time
	received atomic.Int64 // time.Since(start) at the latest read
	ended    atomic.Bool  // a read has failed
}

func newConn(nc net.Conn) *conn {
	c := &conn{Conn: nc, start: time.Now()}
	if tcp, ok := nc.(*net.TCPConn); ok {
		c.raw, _ = tcp.SyscallConn() // without raw, acknowledgements are only delayed
	}
	c.quick()
	return c
}

// quick tells the kernel to acknowledge at once. Otherwise, Nagle's algorithm in sshd and the delayed acknowledgements
// of this side together delay the first command by up to 40 ms. The kernel resets the option by itself, so quick is
// called after each read.
func (c *conn) quick() {
	if c.raw != nil {
		_ = c.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
}

// Read reads from the connection, and records the time.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received.Store(int64(time.Since(c.start)))
		c.quick()
	}
	if err != nil {
		c.ended.Store(true)
	}
	return n, err
}

// errEnded is the error of a write after a read has failed.
var errEnded = errors.New("the connection has ended")

// Write writes to the connection. After a failed read, Write returns an error. Otherwise x/crypto/ssh would wait
// forever if it opens a channel while the connection ends.
func (c *conn) Write(b []byte) (int, error) {
	if c.ended.Load() {
		return 0, errEnded
	}
	return c.Conn.Write(b)
}

// last returns the time of the latest read.
func (c *conn) last() time.Time { return c.start.Add(time.Duration(c.received.Load())) }

// hungUp reports whether err means that the other side closed a connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) || errors.Is(err, errEnded) || strings.Contains(err.Error(), "connection reset by peer")
}
