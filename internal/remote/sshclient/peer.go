package sshclient

import (
	"fmt"
	"net"
	"strings"

	"github.com/gangrun/gangrun/internal/remote/shell"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
)

// Peer is a host and the way to it.
type Peer struct {
	Name string   // the name that the user typed
	Host string   // the name or address to connect to
	Port int      // the port of its sshd
	User string   // the user who logs in
	Via  []string // the jump hosts on the way, the first one first
	Addr string   // the network address, as IP:PORT; empty if it is not known
}

func newPeer(e sshconfig.Endpoint) Peer {
	return Peer{Name: e.Name, Host: e.Host, Port: e.Port, User: e.User}
}

// String returns the host, its address and port, the user and the jump hosts.
func (p Peer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "host %q (", p.Name)
	if p.Host != p.Name {
		b.WriteString(p.Host + ", ")
	}
	if ip, _, err := net.SplitHostPort(p.Addr); err == nil && ip != p.Host {
		b.WriteString(ip + ", ")
	}
	fmt.Fprintf(&b, "port %d, user %q", p.Port, p.User)
	if len(p.Via) > 0 {
		fmt.Fprintf(&b, ", through %s", strings.Join(p.Via, ", "))
	}
	return b.String() + ")"
}

// Command returns the ssh command line with which a person can log in the same way.
func (p Peer) Command() string {
	var b strings.Builder
	b.WriteString("ssh")
	if p.Port != sshconfig.DefaultPort {
		fmt.Fprintf(&b, " -p %d", p.Port)
	}
	return b.String() + " " + shell.Quote(p.User+"@"+p.Name)
}
