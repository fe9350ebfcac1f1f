// Package peer finds out which process is at the other end of a connection.
package peer

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
)

// IsDescendant reports whether the other end of a connection over the loopback interface belongs to a
// descendant of this process. likely is the PID of the process that probably has the other end, or 0.
// IsDescendant first looks at that process and its descendants.
func IsDescendant(conn *net.TCPConn, likely int) bool {
	here, ok1 := conn.LocalAddr().(*net.TCPAddr)
	there, ok2 := conn.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return false
	}
	socket, err := findSocket(there, here)
	if err != nil || int(socket.uid) != os.Getuid() {
		return false
	}
	link := "socket:[" + strconv.FormatUint(uint64(socket.inode), 10) + "]"
	if likely > 0 && holds(likely, link) {
		return true
	}
	if likely > 0 && slices.ContainsFunc(process.ListedDescendants(likely), func(pid int) bool { return holds(pid, link) }) {
		return true
	}
	return slices.ContainsFunc(process.Descendants(os.Getpid()), func(p process.Process) bool { return holds(p.PID, link) })
}

// holds reports whether a process has a descriptor that links to link.
func holds(pid int, link string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		target, err := os.Readlink(dir + "/" + fd.Name())
		return err == nil && target == link
	})
}

// socket is a socket as the kernel describes it.
type socket struct{ uid, inode uint32 }

// findSocket asks the kernel for the IPv4 TCP socket with these ends. See sock_diag(7). Reading /proc/net/tcp instead
// would take milliseconds.
func findSocket(local, remote *net.TCPAddr) (socket, error) {
	from, to := local.IP.To4(), remote.IP.To4()
	if from == nil || to == nil {
		return socket{}, errors.New("no IPv4 addresses")
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return socket{}, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	// struct nlmsghdr, struct inet_diag_req_v2
	const header, size = 16, 16 + 56
	native, network := binary.NativeEndian, binary.BigEndian
	ask := make([]byte, size)
	native.PutUint32(ask, size)
	native.PutUint16(ask[4:], unix.SOCK_DIAG_BY_FAMILY)
	native.PutUint16(ask[6:], unix.NLM_F_REQUEST)
	ask[header], ask[header+1] = unix.AF_INET, unix.IPPROTO_TCP
	native.PutUint32(ask[header+4:], 1<<established)
	network.PutUint16(ask[header+8:], uint16(local.Port))
	network.PutUint16(ask[header+10:], uint16(remote.Port))
	copy(ask[header+12:], from)
	copy(ask[header+28:], to)
	native.PutUint64(ask[header+48:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	if err := unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, os.NewSyscallError("sendto", err)
	}
	// The kernel answers before sendto(2) returns.
	answer := make([]byte, 4<<10)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return socket{}, os.NewSyscallError("recvfrom", err)
	}
	// struct nlmsghdr, struct inet_diag_msg
	if n < header+72 || native.Uint16(answer[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return socket{}, errors.New("no such socket")
	}
	return socket{uid: native.Uint32(answer[header+64:]), inode: native.Uint32(answer[header+68:])}, nil
}

// established is the state TCP_ESTABLISHED.
const established = 1

// ProcessOf returns the process at the other end of a unix socket. ok is false if the process belongs to
// another user.
func ProcessOf(conn *net.UnixConn) (pid int, ok bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *unix.Ucred
	if err2 := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err2 != nil || err != nil {
		return 0, false
	}
	return int(cred.Pid), int(cred.Uid) == os.Getuid()
}
