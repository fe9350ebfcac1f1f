package sshclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	xssh "golang.org/x/crypto/ssh"
)

const (
	defaultKeepAlive = time.Second
	defaultSilence   = 10 * time.Second
)

// Dialer connects to hosts. It must not be copied, and its fields must not change after the
// first Dial.
type Dialer struct {
	Config sshconfig.Config
	// Limit is how many connections may be set up at the same time; 0 means no limit.
	Limit int
	// Ask asks a person on a terminal for a secret, and does not show what the person types. It is nil if there
	// is no terminal; Dial then skips encrypted keys. The Dialer calls Ask once for each key. Calls do not
	// overlap.
	Ask func(prompt string) (secret string, err error)
	// KeepAlive is the time between two requests by which the Dialer finds out whether a host still answers; 0
	// means 1 s.
	KeepAlive time.Duration
	// Silence is how long a host may be silent before the Dialer closes its connection; 0 means 10 s.
	Silence time.Duration

	keys keyring

	mu    sync.Mutex
	slots chan struct{}
	jumps map[string]*jump
}

// Format formats a Dialer without the keys that it has read.
func (d *Dialer) Format(s fmt.State, _ rune) { fmt.Fprint(s, "ssh dialer") }

// Dial connects to host, which is [USER@]HOST[:PORT] or a name of ssh_config, and logs in. The error is a
// *HostKeyError, an *AuthError, a *DialError or a *sshconfig.Error. It may be about a jump host on the way. ctx
// limits only the set-up of the connection.
func (d *Dialer) Dial(ctx context.Context, host string) (*Client, error) {
	e, notes, err := d.Config.Resolve(host)
	if err != nil {
		return nil, err
	}
	leave, err := d.enter(ctx)
	if err != nil {
		return nil, dialError(ctx, newPeer(e), e.ConnectTimeout, err)
	}
	defer leave()
	c, err := d.dial(ctx, e, nil)
	if err != nil {
		return nil, err
	}
	c.notes = notes
	return c, nil
}

// enter waits until fewer than Limit connections are being set up.
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

// connect connects to e, over the network or through a client.
func (d *Dialer) connect(ctx context.Context, e sshconfig.Endpoint, peer Peer, through *Client) (*Client, error) {
	known, err := readKnown(e)
	if err != nil {
		return nil, err
	}
	limit := newTimeLimit(ctx, e.ConnectTimeout)
	defer limit.end()
	failed := func(err error) error {
		if through != nil && through.Err() != nil {
			return through.Err()
		}
		if limit.exceeded() {
			return &DialError{Peer: peer, Reason: DialTimeout, Limit: e.ConnectTimeout, Err: err}
		}
		return dialError(ctx, peer, e.ConnectTimeout, err)
	}
	address := net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	network, err := open(limit.ctx, e, address, through)
	if err != nil {
		return nil, failed(err)
	}
	peer.Addr = network.RemoteAddr().String()
	if through != nil {
		peer.Addr = ""
	}
	hangUp := context.AfterFunc(limit.ctx, func() { network.Close() })
	conn := newConn(network)

	login := d.newLogin(e, limit)
	defer login.close()
	var wrongKey error
	settings := &xssh.ClientConfig{
		Config:            xssh.Config{KeyExchanges: e.Algorithms.KeyExchanges, Ciphers: e.Algorithms.Ciphers, MACs: e.Algorithms.MACs},
		User:              e.User,
		HostKeyCallback:   known.callback(e, peer, &wrongKey),
		HostKeyAlgorithms: known.algorithms(e.Algorithms.HostKeys),
		AuthCallback: func(ctx *xssh.ClientAuthContext) (xssh.AuthMethod, error) {
			if conn.ended.Load() { // x/crypto/ssh calls this function as if the host had refused the latest key
				return nil, errEnded
			}
			return login.method(ctx)
		},
	}
	sshConn, channels, requests, err := xssh.NewClientConn(conn, address, settings)
	if err == nil && !hangUp() { // the context ended just as the login succeeded
		sshConn.Close()
		err = limit.ctx.Err()
	}
	if err != nil {
		network.Close()
		switch {
		case wrongKey != nil:
			return nil, wrongKey
		case limit.ctx.Err() == nil && login.began() && !errors.Is(err, errEnded):
			return nil, login.error(peer, innermost(err))
		}
		return nil, failed(err)
	}
	return d.newClient(peer, conn, xssh.NewClient(sshConn, channels, requests)), nil
}

// open opens the network connection to e. If through is not nil, the connection goes through that jump host.
func open(ctx context.Context, e sshconfig.Endpoint, address string, through *Client) (net.Conn, error) {
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

// innermost returns the innermost error of err. If the host closed the connection during a login, that error is what
// the host sent.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
