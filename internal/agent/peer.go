package agent

import (
	"encoding/binary"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownPeer reports whether the other end of a connection over the loopback
// interface belongs to a process below this one.
func ownPeer(conn *net.TCPConn) bool {
	here, ok1 := conn.LocalAddr().(*net.TCPAddr)
	there, ok2 := conn.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return false
	}
	inode := socketInode(there, here)
	if inode == "" {
		return false
	}
	link := "socket:[" + inode + "]"
	for _, p := range descendants(os.Getpid()) {
		dir := "/proc/" + strconv.Itoa(p.pid) + "/fd"
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if target, err := os.Readlink(dir + "/" + fd.Name()); err == nil && target == link {
				return true
			}
		}
	}
	return false
}

// socketInode finds the IPv4 socket with these ends in /proc/net/tcp; "" where
// there is none. See proc_net_tcp(5): addresses are in the host's byte order.
func socketInode(local, remote *net.TCPAddr) string {
	data, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	want := [2]string{hexAddress(local), hexAddress(remote)}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) > 9 && f[1] == want[0] && f[2] == want[1] && f[3] == established {
			return f[9]
		}
	}
	return ""
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

// clients returns the inodes of the sockets that are connected to one of the
// addresses.
func clients(addresses []string) map[string]bool {
	found := map[string]bool{}
	eachTo(addresses, func(state, inode string) {
		if state == established {
			found["socket:["+inode+"]"] = true
		}
	})
	return found
}

// lingering reports whether a socket was connected to one of the addresses that
// no process holds any more.
func lingering(addresses []string) (found bool) {
	eachTo(addresses, func(state, _ string) { found = found || state != established })
	return found
}

// eachTo calls f for each TCP socket of this machine that is or was connected to
// one of the addresses.
func eachTo(addresses []string, f func(state, inode string)) {
	var want []string
	for _, a := range addresses {
		if to, err := net.ResolveTCPAddr("tcp4", a); err == nil { // a number: nobody is asked
			want = append(want, hexAddress(to))
		}
	}
	data, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) <= 9 {
			continue
		}
		for _, w := range want {
			if fields[2] == w {
				f(fields[3], fields[9])
			}
		}
	}
}

// holds reports whether a process, or one below it, has one of the sockets.
func holds(pid int, sockets map[string]bool) bool {
	has := func(pid int) bool {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd"
		fds, err := os.ReadDir(dir)
		if err != nil {
			return false
		}
		for _, fd := range fds {
			if target, err := os.Readlink(dir + "/" + fd.Name()); err == nil && sockets[target] {
				return true
			}
		}
		return false
	}
	if has(pid) {
		return true
	}
	for _, p := range descendants(pid) {
		if has(p.pid) {
			return true
		}
	}
	return false
}
