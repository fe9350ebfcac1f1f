package bridge

import (
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// lastWords bounds how long what an agent has said last may be on its way. A line that
// is cut takes it no more, and the host's sshd notices that in hours, if ever.
// It is looked that often whether they have come: a process that was stopped has had
// no time for them.
const (
	lastWords = 3 * time.Second
	looks     = 10
)

// carry moves bytes both ways until either side ends; asked reports whether the
// controller has said anything.
func carry(conn *net.UnixConn, in io.Reader, out io.Writer) (asked bool) {
	ended := make(chan int64, 2) // the other copy ends with the process
	go func() { n, _ := io.Copy(conn, in); ended <- n }()
	go func() { n, _ := io.Copy(out, conn); ended <- n }()
	left := make(chan struct{})
	go func() { defer close(left); awaitHangUp(conn) }() // ends with conn, at the latest here
	defer func() { <-left }()
	defer conn.Close()
	defer conn.CloseWrite()
	defer conn.CloseRead()
	select {
	case n := <-ended:
		return n > 0
	case <-left:
	}
	tick := time.NewTicker(lastWords / looks)
	defer tick.Stop()
	for range looks {
		select {
		case n := <-ended:
			return n > 0
		case <-tick.C:
		}
	}
	return true
}

// awaitHangUp waits until the other side of conn has closed it, or this side has shut
// it down: whoever copies from it may be stuck elsewhere.
func awaitHangUp(conn *net.UnixConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	copied := -1 // Close would wait for who looks at the descriptor itself
	if err := raw.Control(func(fd uintptr) { copied, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || copied < 0 {
		return
	}
	defer unix.Close(copied)
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(copied), Events: unix.POLLRDHUP}}, -1)
		if err != unix.EINTR {
			return
		}
	}
}
