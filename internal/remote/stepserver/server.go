// Package stepserver is the server that gangrun starts on each node of a batch job through the batch system. It
// is an SSH server that runs commands for one client, in the cgroups and with the environment of the job. It
// accepts only the key of that client, and prints its own public key on standard output. So both sides can
// trust each other, although there is no secret in an environment or on a command line. The server supports no
// other part of SSH: no terminals, no forwarding and no other users.
package stepserver

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// Mark is the beginning of each line that a server prints for its client.
const Mark = "gangrun step: "

// Report is what a server tells its client after the server has started.
type Report struct {
	Node      string
	Port      int
	HostKey   []byte   // as in RFC 4253, 6.6
	Addresses []string // IP addresses of the node
}

// String returns the report as one line, without Mark.
func (r Report) String() string {
	return fmt.Sprintf("%s %d %s %s", r.Node, r.Port, base64.StdEncoding.EncodeToString(r.HostKey), strings.Join(r.Addresses, ","))
}

// ParseReport parses the text after Mark in a line.
func ParseReport(line string) (Report, error) {
	var r Report
	var key, addresses string
	if _, err := fmt.Sscan(line, &r.Node, &r.Port, &key, &addresses); err != nil {
		return r, fmt.Errorf("%q is no report of a step: %w", line, err)
	}
	var err error
	if r.HostKey, err = base64.StdEncoding.DecodeString(key); err != nil || r.Port < 1 || r.Port > 65535 {
		return r, fmt.Errorf("%q is no report of a step", line)
	}
	r.Addresses = strings.Split(addresses, ",")
	return r, nil
}

const (
	// loginLimit is how long a client may take to log in.
	loginLimit = 10 * time.Second
	// maxLogins bounds the connections that have not logged in. The server closes further connections.
	maxLogins = 64
	// lookEvery is the interval at which the server looks for processes that are left.
	lookEvery = 50 * time.Millisecond
)

// server serves one client key.
type server struct {
	config   *xssh.ServerConfig
	listener net.Listener
	left     func() (bool, error) // reports whether descendants of this process are alive
	grace    time.Duration        // how long the server stays without a client and without descendants
	// started starts a child that a session waits for. ended reports that the child has ended.
	started func(start func() (pid int, err error)) error
	ended   func(pid int)

	logins  chan struct{} // one element for each connection that has not logged in
	serving sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool // logged in
	closed time.Time         // when the last of conns was closed
	ending bool              // a client has asked for the end
}

// newServer returns a server that accepts the key of a client, and its report.
func newServer(client ed25519.PublicKey, grace time.Duration, left func() (bool, error)) (*server, Report, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, Report{}, err
	}
	signer, err := xssh.NewSignerFromKey(private)
	if err != nil {
		return nil, Report{}, err
	}
	accepted, err := xssh.NewPublicKey(client)
	if err != nil {
		return nil, Report{}, err
	}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, Report{}, err
	}
	s := &server{listener: listener, left: left, grace: grace, logins: make(chan struct{}, maxLogins), conns: map[net.Conn]bool{}, closed: time.Now()}
	s.config = &xssh.ServerConfig{
		MaxAuthTries: 2, ServerVersion: "SSH-2.0-gangrun",
		PublicKeyCallback: func(_ xssh.ConnMetadata, key xssh.PublicKey) (*xssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), accepted.Marshal()) {
				return nil, errors.New("another key")
			}
			return nil, nil
		},
	}
	s.config.AddHostKey(signer)
	r := Report{Node: nodeName(), Port: listener.Addr().(*net.TCPAddr).Port, HostKey: signer.PublicKey().Marshal(), Addresses: addresses()}
	return s, r, nil
}

// nodeName returns the name that the batch system has for this machine.
func nodeName() string {
	if name := os.Getenv("SLURMD_NODENAME"); name != "" {
		return name
	}
	name, _ := os.Hostname()
	return name
}

// addresses returns the IP addresses of this machine that other machines may reach.
func addresses() []string {
	found := []string{}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			found = append(found, ip.IP.String())
		}
	}
	if len(found) == 0 {
		found = append(found, "127.0.0.1")
	}
	return found
}

// serve serves until the client asks for the end, or until there has been no client for longer than the grace. It then
// waits until no descendant of this process is left.
func (s *server) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.serving.Go(func() { s.accept(ctx) })
	err := s.await(ctx)
	_ = s.listener.Close()
	cancel()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
	return err
}

// asked reports whether the client has asked for the end of the server.
func (s *server) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// await waits until the server must end.
func (s *server) await(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s.mu.Lock()
		over := s.ending || len(s.conns) == 0 && time.Since(s.closed) > s.grace
		s.mu.Unlock()
		if left, err := s.left(); err != nil || over && !left {
			return err
		}
	}
}

// accept accepts connections.
func (s *server) accept(ctx context.Context) {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-time.After(lookEvery): // too many open files, for instance
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case s.logins <- struct{}{}:
			s.serving.Go(func() { s.connection(ctx, c) })
		default:
			_ = c.Close()
		}
	}
}

// connection serves one connection.
func (s *server) connection(ctx context.Context, c net.Conn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(loginLimit))
	login, channels, requests, err := xssh.NewServerConn(c, s.config)
	<-s.logins
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.closed = time.Now()
		s.mu.Unlock()
	}()
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for r := range requests { // keepalive@openssh.com and the like
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	})
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(xssh.UnknownChannelType, "there are only sessions here")
			continue
		}
		channel, requests, err := n.Accept()
		if err != nil {
			break
		}
		sessions.Go(func() { s.session(channel, requests) })
	}
	_ = login.Wait()
	sessions.Wait()
}
