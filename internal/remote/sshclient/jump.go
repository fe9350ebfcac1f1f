package sshclient

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/remote/sshconfig"
)

// maxJumps limits the number of jump hosts on the way to a host.
const maxJumps = 16

// jump is a connection to a jump host, which all connections through it share.
type jump struct {
	users  int
	cancel context.CancelFunc
	ready  chan struct{} // closed when client or err is set
	client *Client
	err    error
}

// dial connects to e through its jump hosts. way has the jump hosts that wait for this connection, the outermost first.
func (d *Dialer) dial(ctx context.Context, e sshconfig.Endpoint, way []string) (*Client, error) {
	peer := newPeer(e)
	peer.Via = e.Jumps
	if len(e.Jumps) == 0 {
		return d.connect(ctx, e, peer, nil)
	}
	for {
		through, shared, release, err := d.through(ctx, e, way)
		if err != nil {
			return nil, err
		}
		c, err := d.connect(ctx, e, peer, through)
		if err == nil {
			c.release = release
			return c, nil
		}
		// If the connection to the jump host was shared and has ended, a new connection may work.
		ended := shared && through.Err() != nil
		if ended {
			<-through.Done()
		}
		release()
		if !ended || ctx.Err() != nil {
			return nil, err
		}
	}
}

// through connects to the last jump host of e, through the jump hosts before it. It reaches the first jump host as
// ssh_config says. shared is true if the connection existed already.
func (d *Dialer) through(ctx context.Context, e sshconfig.Endpoint, way []string) (c *Client, shared bool, release func(), err error) {
	last := len(e.Jumps) - 1
	hop, _, err := d.Config.Resolve(e.Jumps[last])
	if err != nil {
		return nil, false, nil, err
	}
	if last > 0 {
		hop.Jumps = e.Jumps[:last]
	}
	id := strings.Join(append(slices.Clone(hop.Jumps), hop.User+"@"+hop.Name+":"+strconv.Itoa(hop.Port)), ",")
	if slices.Contains(way, id) || len(way) == maxJumps {
		return nil, false, nil, &sshconfig.Error{Text: fmt.Sprintf("host %q: the way through its jump hosts leads back to %q", e.Name, hop.Name), Fix: "fix ProxyJump in ~/.ssh/config (ProxyJump none ends the way)"}
	}
	way = append(slices.Clone(way), id)

	d.mu.Lock()
	j := d.jumps[id]
	if j != nil && j.dead() {
		j = nil // the users of the dead jump release it
	}
	shared = j != nil
	if !shared {
		j = &jump{ready: make(chan struct{})}
		var dialing context.Context
		dialing, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if d.jumps == nil {
			d.jumps = map[string]*jump{}
		}
		d.jumps[id] = j
		go func() {
			defer close(j.ready)
			j.client, j.err = d.dial(dialing, hop, way)
		}()
	}
	j.users++
	d.mu.Unlock()

	release = sync.OnceFunc(func() { d.leave(id, j) })
	select {
	case <-j.ready:
	case <-ctx.Done():
		release()
		peer := newPeer(e)
		peer.Via = e.Jumps
		return nil, false, nil, dialError(ctx, peer, e.ConnectTimeout, ctx.Err())
	}
	if j.err != nil {
		release()
		return nil, false, nil, j.err
	}
	return j.client, shared, release, nil
}

// dead reports whether the connection has failed or ended.
func (j *jump) dead() bool {
	select {
	case <-j.ready:
	default:
		return false
	}
	if j.err != nil {
		return true
	}
	select {
	case <-j.client.Done():
		return true
	default:
		return false
	}
}

// leave removes a user of a jump, and closes the jump with its last user.
func (d *Dialer) leave(id string, j *jump) {
	d.mu.Lock()
	j.users--
	last := j.users == 0
	if last && d.jumps[id] == j {
		delete(d.jumps, id)
	}
	d.mu.Unlock()
	if !last {
		return
	}
	j.cancel()
	<-j.ready
	if j.client != nil {
		j.client.Close()
	}
}
