package sshclient

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// Server describes one of gangrun's own SSH servers (see package stepserver). The host key of such a server is
// known, and the server accepts only Key.
type Server struct {
	Name    string // the name of its host
	Address string // host or IP address
	Port    int
	User    string
	HostKey []byte // as in RFC 4253, 6.6
	Key     ed25519.PrivateKey
}

// DialServer connects to a server and logs in. ctx limits only the set-up of the connection. The error is a
// *DialError if the server does not answer. It is also a *DialError, and not a *HostKeyError or an *AuthError,
// if either side refuses the key of the other, because another server must then have the port now.
func (d *Dialer) DialServer(ctx context.Context, s Server) (*Client, error) {
	peer := Peer{Name: s.Name, Host: s.Address, Port: s.Port, User: s.User}
	failed := func(err error) error { return dialError(ctx, peer, defaultServerLimit, err) }
	signer, err := xssh.NewSignerFromKey(s.Key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, defaultServerLimit)
	defer cancel()
	address := net.JoinHostPort(s.Address, strconv.Itoa(s.Port))
	network, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, failed(err)
	}
	peer.Addr = network.RemoteAddr().String()
	hangUp := context.AfterFunc(ctx, func() { network.Close() })
	conn := newConn(network)
	settings := &xssh.ClientConfig{
		User: s.User, Auth: []xssh.AuthMethod{xssh.PublicKeys(signer)}, HostKeyAlgorithms: []string{xssh.KeyAlgoED25519},
		HostKeyCallback: func(_ string, _ net.Addr, key xssh.PublicKey) error {
			if !bytes.Equal(key.Marshal(), s.HostKey) {
				return errOtherServer
			}
			return nil
		},
	}
	sshConn, channels, requests, err := xssh.NewClientConn(conn, address, settings)
	if err == nil && !hangUp() { // the context ended just as the login succeeded
		sshConn.Close()
		err = ctx.Err()
	}
	if err != nil {
		network.Close()
		if errors.Is(err, errOtherServer) {
			return nil, fmt.Errorf("%s: %w", peer, errOtherServer)
		}
		return nil, failed(err)
	}
	return d.newClient(peer, conn, xssh.NewClient(sshConn, channels, requests)), nil
}

// defaultServerLimit limits the set-up of a connection to a Server.
const defaultServerLimit = 10 * time.Second

// errOtherServer is the error if a port belongs to another server than the wanted one.
var errOtherServer = errors.New("another server has the port of the one that gangrun started")
