package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

const (
	defaultKeepAlive = time.Second
	defaultSilence   = 10 * time.Second
	// maxJumps bounds the hosts gone through to one host.
	maxJumps = 16
)

// A Dialer connects to hosts. It must not be copied; its fields must not
// change after the first Dial.
type Dialer struct {
	Config Config
	// Limit is how many connections are being set up at once; 0 for no limit.
	Limit int
	// Ask asks a person on a terminal for a secret and does not show what is
	// typed. nil where there is no terminal: then encrypted keys are left out.
	// It is called one at a time, and once for a key.
	Ask func(prompt string) (secret string, err error)
	// KeepAlive is the time between two questions whether the host is there; 0
	// for 1 s.
	KeepAlive time.Duration
	// Silence is how long a host may say nothing before its connection is
	// closed and Done; 0 for 10 s.
	Silence time.Duration

	keys keyring

	mu    sync.Mutex
	slots chan struct{}
	jumps map[string]*jump
}

// Format prints nothing of the keys that were read.
func (d *Dialer) Format(s fmt.State, _ rune) { fmt.Fprint(s, "ssh dialer") }

// A jump is a connection to a jump host, shared by those who go through it.
type jump struct {
	users  int
	cancel context.CancelFunc
	ready  chan struct{} // closed when client or err is there
	client *Client
	err    error
}

// Dial connects to host, [USER@]HOST[:PORT] or a name of ssh_config, and logs
// in. It fails with a *HostKeyError, an *AuthError, a *DialError (which may be
// about a jump host on the way) or a *ConfigError. ctx bounds the set-up, not
// the connection's life.
func (d *Dialer) Dial(ctx context.Context, host string) (*Client, error) {
	e, notes, err := d.Config.Resolve(host)
	if err != nil {
		return nil, err
	}
	leave, err := d.enter(ctx)
	if err != nil {
		return nil, dialError(ctx, e.peer(), e.ConnectTimeout, err)
	}
	defer leave()
	c, err := d.dial(ctx, e, nil)
	if err != nil {
		return nil, err
	}
	c.notes = notes
	return c, nil
}

// enter waits for one of Limit places.
func (d *Dialer) enter(ctx context.Context) (leave func(), err error) {
	if d.Limit <= 0 {
		return func() {}, ctx.Err()
	}
	d.mu.Lock()
	if d.slots == nil {
		d.slots = make(chan struct{}, d.Limit)
	}
	slots := d.slots
	d.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial connects to e, through its jump hosts. way is the jumps that are being
// set up for somebody already, the outermost first.
func (d *Dialer) dial(ctx context.Context, e Endpoint, way []string) (*Client, error) {
	peer := e.peer()
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
		// One that was dying when this one joined it says nothing of a new one.
		dying := shared && through.Err() != nil
		if dying {
			<-through.Done()
		}
		release()
		if !dying || ctx.Err() != nil {
			return nil, err
		}
	}
}

// through connects to the last of e's jump hosts, which is itself reached
// through those before it; the first is reached as ssh_config says. shared says that
// somebody else had set the connection up.
func (d *Dialer) through(ctx context.Context, e Endpoint, way []string) (c *Client, shared bool, release func(), err error) {
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
		return nil, false, nil, &ConfigError{Text: fmt.Sprintf("host %q: the way through its jump hosts comes back to %q", e.Name, hop.Name), Fix: "mend ProxyJump in ~/.ssh/config (ProxyJump none ends a way)"}
	}
	way = append(slices.Clone(way), id)

	d.mu.Lock()
	j := d.jumps[id]
	if j != nil && j.dead() {
		j = nil // those who hold the dead one let go of it by themselves
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

	release = sync.OnceFunc(func() { d.letGo(id, j) })
	select {
	case <-j.ready:
	case <-ctx.Done():
		release()
		peer := e.peer()
		peer.Via = e.Jumps
		return nil, false, nil, dialError(ctx, peer, e.ConnectTimeout, ctx.Err())
	}
	if j.err != nil {
		release()
		return nil, false, nil, j.err
	}
	return j.client, shared, release, nil
}

// dead says whether a jump is of no use to newcomers.
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

// letGo ends a jump with its last user.
func (d *Dialer) letGo(id string, j *jump) {
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

// connect makes the connection itself, over the network or through a client.
func (d *Dialer) connect(ctx context.Context, e Endpoint, peer Peer, through *Client) (*Client, error) {
	known, err := readKnown(e)
	if err != nil {
		return nil, err
	}
	patience := newPatience(ctx, e.ConnectTimeout)
	defer patience.end()
	failed := func(err error) error {
		if through != nil && through.Err() != nil {
			return through.Err()
		}
		if patience.out() {
			return &DialError{Peer: peer, Reason: DialTimeout, Timeout: e.ConnectTimeout, Err: err}
		}
		return dialError(ctx, peer, e.ConnectTimeout, err)
	}
	address := net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	conn, err := open(patience.ctx, e, address, through)
	if err != nil {
		return nil, failed(err)
	}
	peer.Addr = conn.RemoteAddr().String()
	if through != nil {
		peer.Addr = ""
	}
	hangUp := context.AfterFunc(patience.ctx, func() { conn.Close() })
	line := newLine(conn)

	login := d.newLogin(e, patience)
	defer login.close()
	var wrongKey error
	settings := &xssh.ClientConfig{
		Config:            xssh.Config{KeyExchanges: e.KeyExchanges, Ciphers: e.Ciphers, MACs: e.MACs},
		User:              e.User,
		HostKeyCallback:   known.callback(e, peer, &wrongKey),
		HostKeyAlgorithms: known.algorithms(e.HostKeyAlgorithms),
		AuthCallback: func(ctx *xssh.ClientAuthContext) (xssh.AuthMethod, error) {
			if line.ended.Load() { // it asks then as if the latest key had been refused
				return nil, errEnded
			}
			return login.method(ctx)
		},
	}
	sshConn, channels, requests, err := xssh.NewClientConn(line, address, settings)
	if err == nil && !hangUp() { // given up just as it succeeded
		sshConn.Close()
		err = patience.ctx.Err()
	}
	if err != nil {
		conn.Close()
		switch {
		case wrongKey != nil:
			return nil, wrongKey
		case patience.ctx.Err() == nil && login.began() && !errors.Is(err, errEnded):
			return nil, login.error(peer, lastWords(err))
		}
		return nil, failed(err)
	}
	return d.newClient(peer, line, xssh.NewClient(sshConn, channels, requests)), nil
}

// open opens the connection to e.
func open(ctx context.Context, e Endpoint, address string, through *Client) (net.Conn, error) {
	if through != nil {
		conn, err := through.ssh.DialContext(ctx, "tcp", address)
		var refused *xssh.OpenChannelError
		if errors.As(err, &refused) {
			return nil, &throughError{refused}
		}
		return conn, err
	}
	dialer := net.Dialer{KeepAlive: -1}
	if e.BindAddress != "" {
		local, err := (&net.Resolver{}).LookupIPAddr(ctx, e.BindAddress)
		if err != nil {
			return nil, fmt.Errorf("BindAddress %q: %w", e.BindAddress, err)
		}
		dialer.LocalAddr = &net.TCPAddr{IP: local[0].IP, Zone: local[0].Zone}
	}
	return dialer.DialContext(ctx, e.Network, address)
}

// lastWords is what the host said when it hung up on a login.
func lastWords(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
