package agent

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/peer"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/shim"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// pmix stands between the ranks of a host and their PMIx server, which is Open
// MPI's daemon: it passes on every byte, and so knows who is in MPI_Init, who has
// called MPI_Abort with what code, and who left without MPI_Finalize.
type pmix struct {
	changed chan struct{}
	say     func(rank int, text string) // a rank wants something printed
	lost    func()                      // the server has hung up on a rank that was not done with it

	wg      sync.WaitGroup
	mu      sync.Mutex
	ranks   map[int]*openmpi.PMIx // nil until the server has answered the rank
	pids    map[int]int           // of the ranks
	open    map[interface{ Close() error }]bool
	ended   bool
	closing chan struct{}
}

func newPMIx(say func(rank int, text string), lost func()) *pmix {
	return &pmix{changed: make(chan struct{}, 1), say: say, lost: lost, closing: make(chan struct{}), ranks: map[int]*openmpi.PMIx{}, pids: map[int]int{}, open: map[interface{ Close() error }]bool{}}
}

// stand returns the variables that tell a rank of its server, changed so that it
// speaks to this process.
func (x *pmix) stand(rank int, env []string) ([]string, error) {
	own := map[string]string{} // by the server's address
	var out []string
	for _, entry := range env {
		before, address, ok := strings.Cut(entry, shim.TCP4)
		if !ok {
			continue
		}
		address, after, _ := strings.Cut(address, ";")
		if after != "" {
			after = ";" + after
		}
		if own[address] == "" {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				return nil, fmt.Errorf("listen for PMIx: %w", err)
			}
			x.keep(l)
			own[address] = l.Addr().String()
			x.wg.Go(func() { x.accept(rank, l, address) })
		}
		out = append(out, before+shim.TCP4+own[address]+after)
	}
	if len(own) > 0 {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ranks[rank] = nil
	}
	return out, nil
}

// keep remembers what close has to close; false when that has been called.
func (x *pmix) keep(c interface{ Close() error }) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		_ = c.Close()
		return false
	}
	x.open[c] = true
	return true
}

func (x *pmix) drop(c interface{ Close() error }) {
	_ = c.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, c)
}

func (x *pmix) accept(rank int, l net.Listener, address string) {
	defer x.drop(l)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files: the rank goes on trying
			select {
			case <-time.After(process.KillEvery):
				continue
			case <-x.closing:
				return
			}
		}
		x.mu.Lock()
		pid := x.pids[rank]
		x.mu.Unlock()
		if !peer.IsDescendant(conn.(*net.TCPConn), pid) || !x.keep(conn) {
			_ = conn.Close()
			continue
		}
		x.wg.Go(func() {
			defer x.drop(conn)
			server, err := net.DialTimeout("tcp4", address, dialLimit)
			if err != nil || !x.keep(server) {
				return
			}
			defer x.drop(server)
			x.pass(rank, conn.(*net.TCPConn), server.(*net.TCPConn))
		})
	}
}

// dialLimit bounds the wait for a PMIx server of this host that takes nobody.
const dialLimit = 5 * time.Second

// pass passes on what both say until both have hung up, or one cannot be
// written to.
func (x *pmix) pass(rank int, client, server *net.TCPConn) {
	state := &openmpi.PMIx{}
	known := false       // the server has answered: it is a client of its
	var done atomic.Bool // the rank has hung up
	forward := func(from, to *net.TCPConn, read func([]byte)) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				quickAck(from)
				read(buffer[:n])
				if _, err := to.Write(buffer[:n]); err != nil {
					break
				}
			}
			if err != nil {
				break
			}
		}
		x.mu.Lock()
		s, known := state.State(), known
		x.mu.Unlock()
		switch {
		case from == client:
			done.Store(true)
		case !done.Load() && known && !s.Finalized && !s.Aborted:
			x.lost() // before the rank sees it, and dies of it
		}
		_ = to.CloseWrite()
	}
	var back sync.WaitGroup
	back.Go(func() {
		forward(server, client, func(data []byte) {
			x.mu.Lock()
			defer x.mu.Unlock()
			state.Server(data)
			if !known {
				known = true
				x.ranks[rank] = state
				x.ring()
			}
		})
		_ = client.CloseRead() // the server has gone: so has who waits for it
	})
	forward(client, server, func(data []byte) {
		x.mu.Lock()
		before := state.State()
		texts := state.Client(data)
		after := state.State()
		x.mu.Unlock()
		for _, text := range texts {
			x.say(rank, text)
		}
		if after.Aborted != before.Aborted {
			x.ring()
		}
	})
	back.Wait()
}

// quickAck acknowledges at once what has come, each time anew: PMIx writes a
// message in two parts, and the kernel holds the second back until the first is
// acknowledged, 40 ms later. See TCP_QUICKACK in tcp(7).
func quickAck(conn *net.TCPConn) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
}

// started says which process a rank is.
func (x *pmix) started(rank, pid int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pids[rank] = pid
}

func (x *pmix) ring() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// state returns how far a rank has come; in says that it has connected, and
// seen that this could be seen.
func (x *pmix) state(rank int) (state openmpi.PMIxState, in, seen bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, seen := x.ranks[rank]
	if s == nil {
		return openmpi.PMIxState{}, false, seen
	}
	return s.State(), true, true
}

// close ends every connection.
func (x *pmix) close() {
	x.mu.Lock()
	x.ended = true
	close(x.closing)
	for c := range x.open {
		_ = c.Close()
	}
	x.mu.Unlock()
	x.wg.Wait()
}
