package ssh

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/gangrun/gangrun/launcher"
)

// A Client is a connection to one host, logged in.
type Client struct {
	peer    Peer
	notes   []string
	line    *line
	ssh     *xssh.Client
	release func() // lets go of the jump host, nil where there is none

	work    sync.WaitGroup // goroutines, all ended by the connection's end
	closing chan struct{}  // closed by Close
	close   func()
	done    chan struct{} // closed when the connection has ended

	mu   sync.Mutex
	err  error
	over bool // Close was called: nothing more is started
}

func (d *Dialer) newClient(peer Peer, line *line, conn *xssh.Client) *Client {
	c := &Client{peer: peer, line: line, ssh: conn, closing: make(chan struct{}), done: make(chan struct{})}
	c.close = sync.OnceFunc(func() {
		c.mu.Lock()
		c.over = true
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
		err := conn.Wait()
		c.lose(&LostError{Peer: peer, Err: err})
		close(c.done)
	})
	c.work.Go(func() { c.ask(interval) })
	c.work.Go(func() { c.listen(silence) })
	return c
}

// spawn runs f, which ends with the connection, unless that is closed already.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.work.Go(f)
	return true
}

// ask has the host say something once an interval, so that its silence means
// something. It waits for each answer: a dead line gets one question, not many.
func (c *Client) ask(interval time.Duration) {
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

// listenEvery is how often the silence of a connection is looked at.
const listenEvery = 200 * time.Millisecond

// listen ends the connection when nothing was heard for limit. What counts is
// any byte, not only answers: those queue behind bulk data on a slow line.
func (c *Client) listen(limit time.Duration) {
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	var vigil launcher.Vigil
	for {
		if silent := vigil.Silence(c.line.last()); silent >= limit {
			c.lose(&LostError{Peer: c.peer, Silence: silent, Err: errors.New("nothing heard")})
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

// lose keeps the first reason for the end, unless it was asked for.
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

// Peer says which host this is and how it was reached.
func (c *Client) Peer() Peer { return c.peer }

// Notes are those of Config.Resolve for this host.
func (c *Client) Notes() []string { return c.notes }

// Done is closed when the connection has ended: closed, lost, or silent for too
// long.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is a *LostError once the connection is lost; nil while it lives and when
// it was closed.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection with all its sessions, and returns when all that it
// started has ended. Commands on the host are not ended by it: they see the end
// of their input.
func (c *Client) Close() error {
	c.close()
	return nil
}

// broken is the error for what failed because the connection did.
func (c *Client) broken(ctx context.Context, err error) error {
	if lost := c.Err(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-c.closing:
		return &LostError{Peer: c.peer, Err: errors.New("it was closed here")}
	default:
		return &LostError{Peer: c.peer, Err: err}
	}
}

// address is the host's own, where that is known.
func (c *Client) address() netip.AddrPort {
	at, err := netip.ParseAddrPort(c.peer.Addr)
	if err != nil {
		return netip.AddrPort{} // through a jump host
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
