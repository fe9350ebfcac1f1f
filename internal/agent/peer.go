package agent

import (
	"encoding/binary"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownPeer reports whether the other end of a connection over the loopback
// interface belongs to a process below this one. It looks first at process
// likely and what is below that; 0 is none.
func ownPeer(conn *net.TCPConn, likely int) bool {
	inode, uid, ok := peerSocket(conn)
	if !ok || uid != strconv.Itoa(os.Getuid()) {
		return false
	}
	link := "socket:[" + inode + "]"
	if likely > 0 && holds(likely, link) {
		return true
	}
	if likely > 0 && slices.ContainsFunc(offspring(likely), func(pid int) bool { return holds(pid, link) }) {
		return true
	}
	return slices.ContainsFunc(descendants(os.Getpid()), func(p process) bool { return holds(p.pid, link) })
}

// holds reports whether a process has a descriptor with that target.
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

// peerSocket finds the other end of an IPv4 connection of this machine in
// /proc/net/tcp. See proc_net_tcp(5): addresses are in the host's byte order.
func peerSocket(conn *net.TCPConn) (inode, uid string, ok bool) {
	here, ok1 := conn.LocalAddr().(*net.TCPAddr)
	there, ok2 := conn.RemoteAddr().(*net.TCPAddr)
	data, err := os.ReadFile("/proc/net/tcp")
	if !ok1 || !ok2 || err != nil {
		return "", "", false
	}
	local, remote := hexAddress(there), hexAddress(here)
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) > 9 && f[1] == local && f[2] == remote && f[3] == established {
			return f[9], f[7], true
		}
	}
	return "", "", false
}

// established is TCP_ESTABLISHED in /proc/net/tcp.
const established = "01"

func hexAddress(a *net.TCPAddr) string {
	ip := a.IP.To4()
	if ip == nil {
		return ""
	}
	const digits = "0123456789ABCDEF"
	hex := func(n uint32, width int) string {
		out := make([]byte, width)
		for i := width - 1; i >= 0; i-- {
			out[i] = digits[n&15]
			n >>= 4
		}
		return string(out)
	}
	return hex(binary.NativeEndian.Uint32(ip), 8) + ":" + hex(uint32(a.Port), 4)
}

// peerPID returns the process at the other end of a unix socket, if it is this
// user's.
func peerPID(conn *net.UnixConn) (int, bool) {
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
