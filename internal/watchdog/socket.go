package watchdog

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// socket is one end of a pair of sockets that carry messages with descriptors. A call that waits blocks its thread.
// socket does not use package net, which Go initialises late.
type socket struct{ file *os.File }

// newSocket takes over a file. It returns an error if the file is not a unix socket.
func newSocket(file *os.File) (socket, error) {
	if domain, err := unix.GetsockoptInt(int(file.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_UNIX {
		return socket{}, errors.Join(unix.ENOTSOCK, err, file.Close())
	}
	return socket{file}, nil
}

// send sends a message, with the descriptors in rights.
func (s socket) send(message, rights []byte) error {
	for {
		err := unix.Sendmsg(int(s.file.Fd()), message, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// receive waits for a message. It returns the lengths of the message and of its rights, and 0 for the message if
// the other end is gone.
func (s socket) receive(message, rights []byte) (n, nRights int, err error) {
	for {
		n, nRights, _, _, err := unix.Recvmsg(int(s.file.Fd()), message, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), nRights, os.NewSyscallError("recvmsg", err)
		}
	}
}
