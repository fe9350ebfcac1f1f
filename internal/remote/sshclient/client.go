package sshclient

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/gangrun/gangrun/internal/runclock"
)

// Client is a connection to one host, on which the user is logged in.
type Client struct {
	peer    Peer
	notes   []string
	conn    *conn
	ssh     *xssh.Client
	release func() // releases the jump host; nil if there is none

	work    sync.WaitGroup // the goroutines of the connection, which end with the connection
	closing chan struct{}  // closed by Close
	close   func()
	done    chan struct{} // closed when the connection has ended

	mu     sync.Mutex
	err    error
	closed bool // Close has been called: no goroutine is started any more
}

func (d *Dialer) newClient(peer Peer, conn *conn, ssh *xssh.Client) *Client {
	c := &Client{peer: peer, conn: conn, ssh: ssh, closing: make(chan struct{}), done: make(chan struct{})}
	c.close = sync.OnceFunc(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		close(c.closing)
		c.ssh.Close()
		c.work.Wait()
		if c.release != nil {
			c.release()
		}
	})
	interval, silence := d.KeepAlive, d.Silence
	if interval <= 0 {
		interval = defaultKeepAlive
	}
	if silence <= 0 {
		silence = defaultSilence
	}
	c.work.Go(func() {
		err := ssh.Wait()
		c.lose(&LostError{Peer: peer, Err: err})
		close(c.done)
	})
	c.work.Go(func() { c.keepAlive(interval) })
	c.work.Go(func() { c.watch(silence) })
	return c
}

// spawn starts f in a goroutine of the connection. f must return when the connection ends. spawn returns false if the
// connection was closed.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Go(f)
	return true
}

// keepAlive sends a request once an interval, so that a working host is never silent for long. It waits for each
// answer, so that it sends only one request on a dead connection.
func (c *Client) keepAlive(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		if _, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil); err != nil {
			return
		}
	}
}

// watchEvery is the interval at which the silence of a connection is measured.
const watchEvery = 200 * time.Millisecond

// watch ends the connection when the host has been silent for limit. Any byte ends a silence. Watching only for answers
// would be wrong, because they queue behind bulk data on a slow connection.
func (c *Client) watch(limit time.Duration) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var silence runclock.Silence
	for {
		if silent := silence.Since(c.conn.last()); silent >= limit {
			c.lose(&LostError{Peer: c.peer, Silence: silent, Err: errors.New("nothing was received")})
			c.ssh.Close()
			return
		}
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
	}
}

// lose sets the reason why the connection ended. It does nothing if the reason is set already or Close was called.
func (c *Client) lose(err error) {
	select {
	case <-c.closing:
		return
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// Peer returns the host and the way to it.
func (c *Client) Peer() Peer { return c.peer }

// Notes returns the notes of sshconfig.Config.Resolve for this host.
func (c *Client) Notes() []string { return c.notes }

// Done returns a channel that is closed when the connection has ended, because it was closed or lost, or
// because the host was silent for too long.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns a *LostError if the connection was lost. It returns nil as long as the connection exists, and
// after Close.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection with all its sessions, and waits for its goroutines. Close does not end commands on
// the host, but they find that their input has ended.
func (c *Client) Close() error {
	c.close()
	return nil
}

// broken returns the error of a session that failed with its connection.
func (c *Client) broken(ctx context.Context, err error) error {
	if lost := c.Err(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-c.closing:
		return &LostError{Peer: c.peer, Err: errors.New("this side has closed it")}
	default:
		return &LostError{Peer: c.peer, Err: err}
	}
}

// Abort closes the connection as Close does, and discards what was written but not sent yet.
func (c *Client) Abort() {
	if tcp, ok := c.conn.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.close()
}

// Address returns the address and port of the host. The result is not valid if the connection goes through a
// jump host.
func (c *Client) Address() netip.AddrPort {
	at, err := netip.ParseAddrPort(c.peer.Addr)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
