package bridge

import (
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// lastData limits the time for the last data of an agent to reach the controller. If the connection is cut, the data
// does not reach the controller, and sshd may notice the cut only after hours. The time is counted in steps, so that it
// does not pass while this process is stopped and cannot pass the data on.
const (
	lastData = 3 * time.Second
	steps    = 10
)

// carry passes bytes on in both directions until either side ends. asked is true if the controller has sent anything.
func carry(conn *net.UnixConn, in io.Reader, out io.Writer) (asked bool) {
	ended := make(chan int64, 2) // the copy in the other direction ends with this process
	go func() { n, _ := io.Copy(conn, in); ended <- n }()
	go func() { n, _ := io.Copy(out, conn); ended <- n }()
	left := make(chan struct{})
	go func() { defer close(left); awaitHangUp(conn) }() // ends when this function shuts conn down
	defer func() { <-left }()
	defer conn.Close()
	defer conn.CloseWrite()
	defer conn.CloseRead()
	select {
	case n := <-ended:
		return n > 0
	case <-left:
	}
	tick := time.NewTicker(lastData / steps)
	defer tick.Stop()
	for range steps {
		select {
		case n := <-ended:
			return n > 0
		case <-tick.C:
		}
	}
	return true
}

// awaitHangUp waits until the other side has closed conn or this side has shut it down. The
// goroutines that copy may not notice that, because they may be blocked in a write.
func awaitHangUp(conn *net.UnixConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	copied := -1 // with conn itself, Close would wait until the poll returns
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
