package openmpi

import (
	"errors"
	"fmt"
	"io"
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

// proxy is between the ranks of a host and their PMIx server, which is Open MPI's daemon. It forwards every byte and
// reads the messages. So it knows which ranks are in MPI_Init, which ranks have called MPI_Abort and with what code,
// and which ranks have ended without MPI_Finalize.
type proxy struct {
	changed chan struct{}
	print   func(rank int, text string) // called if a rank asks its server to print a text
	lost    func()                      // called if the server has closed the connection of a rank that still needed it

	wg      sync.WaitGroup
	mu      sync.Mutex
	ranks   map[int]*openmpi.PMIx // an entry is nil until the server has answered the rank
	pids    map[int]int           // PIDs of the ranks
	open    map[io.Closer]bool
	ended   bool
	closing chan struct{}
}

func newProxy(print func(rank int, text string), lost func()) *proxy {
	return &proxy{
		changed: make(chan struct{}, 1), print: print, lost: lost, closing: make(chan struct{}),
		ranks: map[int]*openmpi.PMIx{}, pids: map[int]int{}, open: map[io.Closer]bool{},
	}
}

// redirect returns the variables by which a rank finds its server. It changes them so that the rank connects to the
// proxy.
func (p *proxy) redirect(rank int, env []string) ([]string, error) {
	own := map[string]string{} // addresses of the proxy, by the address of the server
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
			p.keep(l)
			own[address] = l.Addr().String()
			p.wg.Go(func() { p.accept(rank, l, address) })
		}
		out = append(out, before+shim.TCP4+own[address]+after)
	}
	if len(own) > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ranks[rank] = nil
	}
	return out, nil
}

// keep records c, so that close closes it. After close, keep closes c and returns false.
func (p *proxy) keep(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *proxy) drop(c io.Closer) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

func (p *proxy) accept(rank int, l net.Listener, address string) {
	defer p.drop(l)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many files are open, and the rank tries again
			select {
			case <-time.After(process.KillEvery):
				continue
			case <-p.closing:
				return
			}
		}
		p.mu.Lock()
		pid := p.pids[rank]
		p.mu.Unlock()
		if !peer.IsDescendant(conn.(*net.TCPConn), pid) || !p.keep(conn) {
			_ = conn.Close()
			continue
		}
		p.wg.Go(func() {
			defer p.drop(conn)
			server, err := net.DialTimeout("tcp4", address, dialLimit)
			if err != nil || !p.keep(server) {
				return
			}
			defer p.drop(server)
			p.forward(rank, conn.(*net.TCPConn), server.(*net.TCPConn))
		})
	}
}

// dialLimit limits the wait for a PMIx server of this host that accepts no connection.
const dialLimit = 5 * time.Second

// forward copies data in both directions. It returns when both sides have closed the connection, or when one side
// cannot be written to.
func (p *proxy) forward(rank int, client, server *net.TCPConn) {
	state := &openmpi.PMIx{}
	known := false       // the server has answered, so it knows the client
	var done atomic.Bool // the rank has closed the connection
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
		p.mu.Lock()
		s, known := state.State(), known
		p.mu.Unlock()
		switch {
		case from == client:
			done.Store(true)
		case !done.Load() && known && !s.Finalized && !s.Aborted:
			p.lost() // called before the rank notices the loss and fails
		}
		_ = to.CloseWrite()
	}
	var back sync.WaitGroup
	back.Go(func() {
		forward(server, client, func(data []byte) {
			p.mu.Lock()
			defer p.mu.Unlock()
			state.Server(data)
			if !known {
				known = true
				p.ranks[rank] = state
				p.announce()
			}
		})
		_ = client.CloseRead() // the server is gone, and the rank need not wait for it
	})
	forward(client, server, func(data []byte) {
		p.mu.Lock()
		before := state.State()
		texts := state.Client(data)
		after := state.State()
		p.mu.Unlock()
		for _, text := range texts {
			p.print(rank, text)
		}
		if after.Aborted != before.Aborted {
			p.announce()
		}
	})
	back.Wait()
}

// quickAck makes the kernel acknowledge received data immediately. It must be called after each read. PMIx writes a
// message in two parts. The kernel holds the second part back until the first part is acknowledged, which by default
// takes 40 ms. See TCP_QUICKACK in tcp(7).
func quickAck(conn *net.TCPConn) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
}

// started records the PID of a rank.
func (p *proxy) started(rank, pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids[rank] = pid
}

// announce sends a value on changed.
func (p *proxy) announce() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// state returns how far a rank has come. in is true if the rank has connected. seen is true if the proxy could read the
// rank's messages.
func (p *proxy) state(rank int) (state openmpi.PMIxState, in, seen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, seen := p.ranks[rank]
	if s == nil {
		return openmpi.PMIxState{}, false, seen
	}
	return s.State(), true, true
}

// close ends every connection.
func (p *proxy) close() {
	p.mu.Lock()
	p.ended = true
	close(p.closing)
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
