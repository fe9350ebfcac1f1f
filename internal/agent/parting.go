package agent

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/launcher/pmi1"
)

// MPICH 3.4 to 4.1 over UCX 1.11.1 and later: a rank in MPI_Finalize closes its
// connections, each of which TCP's transport ends with a request that the peer's
// UCX must answer (uct_tcp_ep_flush), and then waits in a barrier of PMI in which
// its own UCX answers nothing (MPIDI_UCX_mpi_finalize_hook). Whoever comes a moment
// later asks ranks that are deaf already, and waits for ever. MPICH 4.2 has no
// barrier there. So a rank that waits, and to which every peer has said that it
// will not be spoken to any more, is let go: what it had to say has been answered,
// and the end of its connections is an answer to who still asks. Two ranks may share
// a connection, which stays open and silent when both are done with it: of such a
// one the controller knows, from both hosts, whether a peer is (pmi1.Parted).

// flushRequest is the length of the request, in bytes: UCX's header of an active
// message (5) and of a put that puts nothing (20).
const flushRequest = 25

// When ranks that wait in a barrier are looked at: soon, and more rarely where
// others take their time.
const (
	partFirst = 200 * time.Millisecond
	partLast  = 2 * time.Second
)

// nextPart returns when to look again at ranks that have waited that long.
func nextPart(waited time.Duration) <-chan time.Time {
	return time.After(min(max(partFirst, waited/8), partLast))
}

// part lets ranks go that nobody will speak to any more, tells the controller how
// all stand where this host alone cannot know it of one, and returns when to look
// again; nil where none waits.
func (g *gang) part() <-chan time.Time {
	may, sought := g.wiring.may, g.wiring.sought
	g.wiring.may, g.wiring.sought = nil, false
	var here pmi1.Standing
	var busy []*rank
	some := false
	for _, r := range g.ranks {
		switch {
		case r.child == nil || r.child.Ended():
		case !g.wiring.server.State(r.number).Waiting:
			busy = append(busy, r)
		default:
			some = true
			open := g.links(r)
			asked, spoken := slices.ContainsFunc(open, asks), slices.ContainsFunc(open, speaks)
			if asked && (!spoken || slices.Contains(may, int32(r.number))) {
				g.wiring.server.Part(r.number)
				continue
			}
			here.Stuck = here.Stuck || asked
			here.Ranks = append(here.Ranks, pmi1.Stand{Rank: r.number, Waits: true, Links: open})
		}
	}
	if sought || here.Stuck {
		for _, r := range busy {
			here.Ranks = append(here.Ranks, pmi1.Stand{Rank: r.number, Links: g.links(r)})
		}
		reportStanding(g.reports, here)
	}
	if !some {
		g.waited = time.Time{}
		return nil
	}
	if g.waited.IsZero() {
		g.waited = time.Now()
	}
	return nextPart(time.Since(g.waited))
}

func asks(l pmi1.Link) bool { return l.Asks }

// speaks reports whether a peer may still speak, as far as this end knows.
func speaks(l pmi1.Link) bool { return !l.Asks }

// links are those of the rank's processes that use UCX.
func (g *gang) links(r *rank) (open []pmi1.Link) {
	pmi := tableAddress(g.wiring.address)
	for _, pid := range append([]int{r.child.PID}, process.ListedDescendants(r.child.PID)...) {
		if some := links(ownConnections(pid), pmi); len(some) > 0 && mapsUCX(pid) {
			open = append(open, some...)
		}
	}
	return open
}

// connection is a TCP socket of a process.
type connection struct {
	state  tcpState
	local  string // as the kernel's tables write it
	remote string
	unread uint64 // bytes that the process has not read
	inode  string
}

// tcpState is a state as proc_net(5) numbers it.
type tcpState uint64

const (
	tcpEstablished tcpState = 1
	tcpClosed      tcpState = 7 // the peer has reset it
	tcpCloseWait   tcpState = 8 // the peer has closed it
	tcpListens     tcpState = 10
)

// links are the connections of a process on which its last word was not said: a
// peer may still speak on it, or waits for the answer to its last request. What else
// is to be read on one is no message, where the process reads none of its
// connections: it was received before MPI_Finalize. The connection to pmi is no
// peer's.
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

// ownConnections returns the TCP sockets of a process, those that listen too.
func ownConnections(pid int) (own []connection) {
	dir := "/proc/" + strconv.Itoa(pid)
	open, _ := os.ReadDir(dir + "/fd") // what could be read is what there is
	inodes := map[string]bool{}
	for _, fd := range open {
		to, _ := os.Readlink(dir + "/fd/" + fd.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range []string{"/net/tcp", "/net/tcp6"} { // of the network that it is in
		data, _ := os.ReadFile(dir + table) // there may be no IPv6
		for _, c := range parseTCP(data) {
			if inodes[c.inode] {
				own = append(own, c)
			}
		}
	}
	return own
}

// tableAddress returns an IPv4 address and port as the kernel's tables write them:
// the address as a number of the machine's byte order; "" where it is none.
func tableAddress(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Is4() {
		return ""
	}
	ip := at.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), at.Port())
}

// parseTCP reads a table of TCP sockets as proc_net(5) describes it; a line that
// cannot be read is left out.
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
	maps, _ := io.ReadAll(io.LimitReader(file, mostMaps))
	return bytes.Contains(maps, []byte("/libuct.so"))
}
