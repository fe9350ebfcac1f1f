package ssh

import (
	"context"

	"github.com/gangrun/gangrun/internal/remote/sshclient"
)

// Client opens connections over SSH.
type Client struct {
	Dialer *sshclient.Dialer
	// Target returns the address to which Client connects to reach a host: [USER@]HOST[:PORT], or the name of a
	// Host in ssh_config.
	Target func(host string) string
}

// Dial connects to a host and logs in.
func (c Client) Dial(ctx context.Context, host string) (*Conn, error) {
	conn, err := c.Dialer.Dial(ctx, c.Target(host))
	if err != nil {
		return nil, err
	}
	return NewConn(conn), nil
}

// NewConn returns a Conn that uses the SSH connection of c.
func NewConn(c *sshclient.Client) *Conn {
	peer, address := c.Peer(), c.Address()
	return &Conn{
		Runner: connection{c}, Notes: c.Notes(), Address: address, Relayed: !address.IsValid(),
		Host: Host{Name: peer.Name, Way: peer.String(), Login: peer.Command()},
	}
}

// connection is an SSH connection as a Runner.
type connection struct{ *sshclient.Client }

// Run starts a command in a session of its own.
func (c connection) Run(ctx context.Context, command string) (*Process, error) {
	s, err := c.Exec(ctx, command)
	if err != nil {
		return nil, err
	}
	return &Process{Stdin: s.Stdin, Stdout: s.Stdout, Command: s}, nil
}

// Close ends the connection, and discards what has not been sent.
func (c connection) Close() error {
	c.Abort()
	return nil
}
