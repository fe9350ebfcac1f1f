package agent

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// keeper has the watchdog keep files open that are locked for a lease: where the
// agent is killed, they stay locked until its ranks are gone.
type keeper struct{ conn *net.UnixConn }

// newKeeper takes over the agent's end of the socket to its watchdog.
func newKeeper(file *os.File) (*keeper, error) {
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is no socket of a watchdog: %w", file.Fd(), err)
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("descriptor %d is no unix socket", file.Fd())
	}
	return &keeper{unixConn}, nil
}

// The first byte of a message; a name follows.
const (
	keepThese = 'k' // descriptors come with it
	keepNone  = 'n' // of those that came by that name
)

// mostKept is how many descriptors travel at once: the kernel allows 253.
const mostKept = 128

// keep has files kept by a name. A nil keeper keeps nothing.
func (k *keeper) keep(name string, fds []int) error {
	for ; k != nil && len(fds) > 0; fds = fds[min(len(fds), mostKept):] {
		if _, _, err := k.conn.WriteMsgUnix(append([]byte{keepThese}, name...), unix.UnixRights(fds[:min(len(fds), mostKept)]...), nil); err != nil {
			return fmt.Errorf("have the watchdog keep a lease: %w", err)
		}
	}
	return nil
}

// drop has the files of a name kept no more.
func (k *keeper) drop(name string) {
	if k != nil {
		_, _ = k.conn.Write(append([]byte{keepNone}, name...)) // a watchdog that is gone keeps nothing
	}
}

// keepFiles is the watchdog's side. It returns when the agent is gone; what it
// keeps then stays open as long as the process.
func keepFiles(file *os.File) {
	keep, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		return
	}
	conn, ok := keep.(*net.UnixConn)
	if !ok {
		return
	}
	kept := map[string][]int{}
	message, rights := make([]byte, 1024), make([]byte, unix.CmsgSpace(4*mostKept))
	for {
		n, oob, _, _, err := conn.ReadMsgUnix(message, rights)
		if err != nil || n == 0 {
			return
		}
		name := string(message[1:n])
		if message[0] == keepNone {
			for _, fd := range kept[name] {
				_ = unix.Close(fd)
			}
			delete(kept, name)
			continue
		}
		parts, err := unix.ParseSocketControlMessage(rights[:oob])
		if err != nil {
			continue
		}
		for _, part := range parts {
			if fds, err := unix.ParseUnixRights(&part); err == nil {
				for _, fd := range fds {
					unix.CloseOnExec(fd)
				}
				kept[name] = append(kept[name], fds...)
			}
		}
	}
}
