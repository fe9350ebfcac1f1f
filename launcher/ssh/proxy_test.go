package ssh

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// proxy passes connections on to an sshd, and can become silent. When it works again, it passes on what it has got
// meanwhile, as a network does.
type proxy struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu     sync.Mutex
	opened sync.Cond
	cut    bool
	closed bool
	conns  map[net.Conn]bool
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, conns: map[net.Conn]bool{}}
	p.opened.L = &p.mu
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) port() string { return strconv.Itoa(p.listener.Addr().(*net.TCPAddr).Port) }

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil {
			near.Close()
			continue
		}
		if !p.keep(near, far) {
			return
		}
		p.work.Go(func() { p.copy(far, near) })
		p.work.Go(func() { p.copy(near, far) })
	}
}

// keep makes close end these connections. It returns false if close was called before.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			c.Close()
		}
		p.conns[c] = true
	}
	return !p.closed
}

// pass waits while the line is cut.
func (p *proxy) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut && !p.closed {
		p.opened.Wait()
	}
}

// copy passes on the data of one side, and its end.
func (p *proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.pass()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			if err == io.EOF {
				_ = to.(*net.TCPConn).CloseWrite()
				return
			}
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		c.Close()
		delete(p.conns, c)
	}
}

func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.opened.Broadcast()
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.opened.Broadcast()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}
