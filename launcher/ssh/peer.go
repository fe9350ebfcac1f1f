package ssh

import (
	"fmt"
	"net"
	"strings"
)

// Peer says which host an error is about, and how it was to be reached.
type Peer struct {
	Name string   // as the user named it
	Host string   // what is dialled: HostName of ssh_config, else Name
	Port int      // of its sshd
	User string   // who logs in there
	Via  []string // jump hosts on the way, the first one first
	Addr string   // the network address reached, "" before there is one
}

// String names the host, its address, its port, the user and the jump hosts.
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

// command is the ssh command line by which a person can try the same way.
func (p Peer) command() string {
	var b strings.Builder
	b.WriteString("ssh")
	if p.Port != DefaultPort {
		fmt.Fprintf(&b, " -p %d", p.Port)
	}
	return b.String() + " " + quote(p.User+"@"+p.Name)
}

// quote makes s one word of a shell for a hint that a person will copy.
func quote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,=") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
