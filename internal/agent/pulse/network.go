package pulse

import (
	"encoding/binary"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

const (
	// networkEvery is how many rounds there are for each reading of the connections.
	networkEvery = 4
	// maxSockets bounds the connections of this host, and maxFiles the open files of a process, that are
	// read.
	maxSockets, maxFiles = 4096, 1024
	// dumpLimit limits the time in which the kernel lists the connections.
	dumpLimit = 100 * time.Millisecond
)

// Network has the TCP connections between this host and others at one moment.
type Network struct{ connections map[uint32]connection }

// connection has counters of the kernel for a TCP connection.
type connection struct {
	busy  time.Duration // the time in which data was sent, but not yet acknowledged
	acked int64         // the bytes that the peer has acknowledged
	rate  int64         // the latest delivery rate in bytes per second (tcpi_delivery_rate)
	rtt   time.Duration // the shortest round-trip time of the last minutes
}

// traffic is what a Sampler remembers of the connections of a rank.
type traffic struct {
	last    map[uint32]connection // by inode
	sending time.Duration
	rate    int64
	rtt     time.Duration
}

// Connections asks the kernel for the TCP connections of this host to other hosts. The Network is empty if
// the kernel does not answer.
func Connections() Network {
	return connections(func(from, to netip.Addr) bool { return from != to && !to.IsLoopback() })
}

// connections asks the kernel for the connections for which want returns true.
func connections(want func(from, to netip.Addr) bool) Network {
	n := Network{map[uint32]connection{}}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return n
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(dumpLimit.Nanoseconds())
	if unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit) != nil {
		return n
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		n.dump(fd, family, want)
	}
	return n
}

// The numbers and layouts of sock_diag(7): struct nlmsghdr, inet_diag_req_v2 and inet_diag_msg.
const (
	headerSize, requestSize, messageSize = 16, 56, 72
	diagInfo                             = 2 // INET_DIAG_INFO
	established                          = 1 // TCP_ESTABLISHED
	// The offsets of tcpi_bytes_acked, tcpi_min_rtt, tcpi_delivery_rate and tcpi_busy_time in struct
	// tcp_info. The kernel reports times in microseconds.
	ackedAt, rttAt, rateAt, busyAt = 120, 148, 160, 168
)

// dump reads the connections of an address family.
func (n Network) dump(fd int, family byte, want func(from, to netip.Addr) bool) {
	request := make([]byte, headerSize+requestSize)
	order := binary.NativeEndian
	order.PutUint32(request[0:], uint32(len(request)))
	order.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request[headerSize], request[headerSize+1], request[headerSize+2] = family, unix.IPPROTO_TCP, 1<<(diagInfo-1)
	order.PutUint32(request[headerSize+4:], 1<<established)
	if unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return
	}
	buffer := make([]byte, 64<<10)
	for {
		size, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return
		}
		for data := buffer[:size]; len(data) >= headerSize; {
			length := int(order.Uint32(data))
			kind := order.Uint16(data[4:])
			if length < headerSize || length > len(data) || kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
				return
			}
			n.add(data[headerSize:length], want)
			data = data[min(aligned(length), len(data)):]
		}
		if len(n.connections) >= maxSockets {
			return // closing the socket ends the listing
		}
	}
}

func aligned(n int) int { return (n + 3) &^ 3 }

// add reads a struct inet_diag_msg and its attributes.
func (n Network) add(message []byte, want func(from, to netip.Addr) bool) {
	if len(message) < messageSize {
		return
	}
	order := binary.NativeEndian
	address := func(at int) netip.Addr {
		if message[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(message[at : at+4]))
		}
		return netip.AddrFrom16([16]byte(message[at : at+16])).Unmap()
	}
	if !want(address(8), address(24)) {
		return
	}
	for rest := message[messageSize:]; len(rest) >= 4; {
		length, kind := int(order.Uint16(rest)), order.Uint16(rest[2:])
		if length < 4 || length > len(rest) {
			return
		}
		if kind == diagInfo {
			info := rest[4:length]
			if len(info) < busyAt+8 {
				return // a kernel before Linux 4.10
			}
			n.connections[order.Uint32(message[68:])] = connection{
				busy: time.Duration(order.Uint64(info[busyAt:])) * time.Microsecond, acked: int64(order.Uint64(info[ackedAt:])),
				rate: int64(order.Uint64(info[rateAt:])), rtt: time.Duration(order.Uint32(info[rttAt:])) * time.Microsecond,
			}
		}
		rest = rest[min(aligned(length), len(rest)):]
	}
}

// look adds to t what the connections of a rank have done since the last call. Of all connections, it takes the highest
// rate and the shortest round-trip time. If only one host has a slow line, all connections of that host are slow. Each
// other host still has a fast connection to some third host.
func (t *traffic) look(n Network, tree []procfs.Stat) {
	if len(n.connections) == 0 {
		return
	}
	before := t.last
	t.last, t.rate, t.rtt = map[uint32]connection{}, 0, 0
	var most time.Duration
	for _, process := range tree {
		for _, inode := range sockets(process.PID) {
			c, ok := n.connections[inode]
			if !ok {
				continue
			}
			t.last[inode] = c
			if was, known := before[inode]; known && c.acked > was.acked {
				most, t.rate = max(most, c.busy-was.busy), max(t.rate, c.rate)
				if t.rtt == 0 || c.rtt < t.rtt {
					t.rtt = c.rtt
				}
			}
		}
	}
	t.sending += most
}

// sockets returns the inodes of the sockets that a process has open.
func sockets(pid int) (inodes []uint32) {
	dir, err := os.Open(procfs.Path(pid, "fd"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxFiles) // the names that were read before an error are enough
	for _, name := range names {
		link, _ := os.Readlink(procfs.Path(pid, "fd/"+name))
		if text, ok := strings.CutPrefix(link, "socket:["); ok {
			inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 32)
			if err == nil {
				inodes = append(inodes, uint32(inode))
			}
		}
	}
	return inodes
}

// set stores the traffic of a rank in d.
func (t *traffic) set(d *job.Delays) {
	d.Sending, d.Rate, d.RTT = job.Duration(t.sending), t.rate, job.Duration(t.rtt)
}
