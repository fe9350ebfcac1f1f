package pmi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/launcher/pmi1"
)

// connection is a TCP socket of a process.
type connection struct {
	state  tcpState
	local  string // in the format of the kernel's tables
	remote string
	unread uint64 // number of bytes that the process has not read
	inode  string
}

// tcpState is the number of a state in proc_net(5).
type tcpState uint64

const (
	tcpEstablished tcpState = 1
	tcpClosed      tcpState = 7 // the peer has reset the connection
	tcpCloseWait   tcpState = 8 // the peer has closed the connection
	tcpListens     tcpState = 10
)

// links returns the open connections of a process to its peers. A connection is open if the peer may still send, or
// waits for the answer to its flush request. Other unread bytes do not matter: the process no longer reads its
// connections, and has received its messages before MPI_Finalize. links leaves out the connection to the PMI server,
// which has the address pmi.
func links(all []connection, pmi string) (open []pmi1.Link) {
	for _, c := range all {
		switch {
		case pmi != "" && c.remote == pmi:
		case c.state == tcpListens, c.state == tcpClosed, c.state == tcpCloseWait:
		case c.state == tcpEstablished && c.unread > 0 && c.unread != flushRequest:
		default:
			open = append(open, pmi1.Link{Local: c.local, Remote: c.remote, Asks: c.state == tcpEstablished && c.unread == flushRequest})
		}
	}
	return open
}

// ownConnections returns the TCP sockets of a process, including those that listen.
func ownConnections(pid int) (own []connection) {
	dir := "/proc/" + strconv.Itoa(pid)
	open, _ := os.ReadDir(dir + "/fd") // after an error, open has what could be read
	inodes := map[string]bool{}
	for _, fd := range open {
		to, _ := os.Readlink(dir + "/fd/" + fd.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range []string{"/net/tcp", "/net/tcp6"} { // the tables of the process's network
		data, _ := os.ReadFile(dir + table) // there may be no IPv6
		for _, c := range parseTCP(data) {
			if inodes[c.inode] {
				own = append(own, c)
			}
		}
	}
	return own
}

// tableAddress returns an IPv4 address and port in the format of the kernel's tables. In that format, the address is a
// number in the machine's byte order. tableAddress returns "" for any other address.
func tableAddress(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Is4() {
		return ""
	}
	ip := at.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), at.Port())
}

// parseTCP parses a table of TCP sockets as described in proc_net(5). It skips lines that it
// cannot parse.
func parseTCP(data []byte) (all []connection) {
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) < 10 {
			continue
		}
		_, queue, _ := strings.Cut(fields[4], ":")
		state, err1 := strconv.ParseUint(fields[3], 16, 8)
		unread, err2 := strconv.ParseUint(queue, 16, 64)
		if err1 == nil && err2 == nil {
			all = append(all, connection{tcpState(state), fields[1], fields[2], unread, fields[9]})
		}
	}
	return all
}

// mapsUCX reports whether a process has mapped UCX's transports.
func mapsUCX(pid int) bool {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return false
	}
	defer file.Close()
	maps, _ := io.ReadAll(io.LimitReader(file, maxMaps))
	return bytes.Contains(maps, []byte("/libuct.so"))
}

// maxMaps limits how many bytes of a process's maps are read.
const maxMaps = 16 << 20
