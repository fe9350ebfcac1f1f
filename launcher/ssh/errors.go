package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// ConfigError is an ssh_config, or a host's name, that cannot be followed.
type ConfigError struct {
	File string // "" where no file is to blame
	Line int
	Text string
	Fix  string
}

// Error says where and what.
func (e *ConfigError) Error() string {
	if e.File == "" {
		return e.Text
	}
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// Hint says what to do next.
func (e *ConfigError) Hint() string { return e.Fix }

// AuthError is a host that does not let the user in.
type AuthError struct {
	Peer
	Tried   []string // what was offered: "key ~/.ssh/id_ed25519 (SHA256:...): refused"
	Skipped []string // what could not be offered, and why
	Offers  []string // the methods that the host takes: "publickey", "password"
	Unable  []string // methods of ssh_config that gangrun cannot do
	Err     error    // the host's own last words, nil where there were none
}

// Error says who was refused and what was tried.
func (e *AuthError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: user %q was not let in: ", e.Peer, e.User)
	if len(e.Tried) == 0 {
		b.WriteString("there was no key to try")
	} else {
		b.WriteString("tried " + strings.Join(e.Tried, ", "))
	}
	if len(e.Skipped) > 0 {
		b.WriteString("; left out " + strings.Join(e.Skipped, ", "))
	}
	if len(e.Offers) > 0 {
		b.WriteString("; the host takes " + strings.Join(e.Offers, ", "))
	}
	if len(e.Unable) > 0 {
		b.WriteString("; ssh_config also asks for " + strings.Join(e.Unable, ", ") + ", which gangrun cannot do")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap is the host's own last words.
func (e *AuthError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *AuthError) Hint() string {
	for _, s := range e.Skipped {
		file, _, open := strings.Cut(s, ": its mode ")
		switch {
		case strings.Contains(s, "encrypted"):
			return "add the key to ssh-agent first (ssh-add), or run gangrun on a terminal, where it asks for the passphrase"
		case strings.Contains(s, "PubkeyAuthentication no"):
			return "gangrun knows no way to log in but keys: take PubkeyAuthentication no from ~/.ssh/config for this host"
		case open:
			return "chmod 600 " + quote(file)
		}
	}
	if e.Err != nil && strings.Contains(e.Err.Error(), "oo many authentication failures") {
		return fmt.Sprintf("the host takes only some tries: name the right key in ~/.ssh/config (Host %s, IdentityFile, IdentitiesOnly yes)", e.Name)
	}
	copyID := "ssh-copy-id"
	if e.Port != DefaultPort {
		copyID += fmt.Sprintf(" -p %d", e.Port)
	}
	copyID += " " + quote(e.User+"@"+e.Name)
	if len(e.Tried) == 0 {
		return fmt.Sprintf("name your key in ~/.ssh/config (IdentityFile), or make one: ssh-keygen -t ed25519; then: %s; see: %s true", copyID, e.command())
	}
	return fmt.Sprintf("where %q is the right user: %s (else set User in ~/.ssh/config, or write USER@%s); see: %s true", e.User, copyID, e.Name, e.command())
}

// Lasting implements launcher.Lasting. A host that has had enough of failed logins lets
// the user in again after a while.
func (e *AuthError) Lasting() bool {
	return e.Err == nil || !strings.Contains(e.Err.Error(), "oo many authentication failures")
}

// Lasting implements launcher.Lasting.
func (e *ConfigError) Lasting() bool { return true }

// DialReason is why a host was not reached.
type DialReason string

// Why a host was not reached.
const (
	DialRefused     DialReason = "refused"        // nothing listens on the port
	DialUnreachable DialReason = "unreachable"    // no route to it
	DialTimeout     DialReason = "timeout"        // it did not answer in time
	DialNameUnknown DialReason = "name-not-found" // its name has no address
	DialClosed      DialReason = "closed"         // it hung up before the end of the login
	DialProtocol    DialReason = "protocol"       // what answers does not speak SSH as we do
	DialCancelled   DialReason = "cancelled"      // the caller gave up
)

// DialError is a host that was not reached.
type DialError struct {
	Peer
	Reason  DialReason
	Timeout time.Duration // that was allowed, for DialTimeout
	Err     error
}

// Error says why.
func (e *DialError) Error() string {
	switch e.Reason {
	case DialRefused:
		return fmt.Sprintf("%s: connection refused: nothing listens on port %d", e.Peer, e.Port)
	case DialUnreachable:
		return fmt.Sprintf("%s: cannot be reached: %v", e.Peer, e.Err)
	case DialTimeout:
		if errors.As(e.Err, new(*net.DNSError)) {
			return fmt.Sprintf("%s: cannot be reached: %v", e.Peer, e.Err)
		}
		return fmt.Sprintf("%s: no answer within %v", e.Peer, e.Timeout)
	case DialNameUnknown:
		return fmt.Sprintf("%s: the name %q has no address", e.Peer, e.Host)
	case DialClosed:
		return fmt.Sprintf("%s: it closed the connection before the end of the login: %v", e.Peer, e.Err)
	case DialCancelled:
		return fmt.Sprintf("%s: given up: %v", e.Peer, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Peer, e.Err)
}

// Unwrap is what the system said.
func (e *DialError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *DialError) Hint() string {
	if e.Reason != DialNameUnknown && errors.As(e.Err, new(*net.DNSError)) {
		return fmt.Sprintf("no name server could be asked for %q: see: getent hosts %s; or give its address as HostName in ~/.ssh/config", e.Host, e.Host)
	}
	switch e.Reason {
	case DialRefused:
		return fmt.Sprintf("start sshd there, or name the right port (Port in ~/.ssh/config); see: %s true", e.command())
	case DialNameUnknown:
		return fmt.Sprintf("check the spelling of %q, or give its address as HostName in ~/.ssh/config", e.Name)
	case DialTimeout, DialUnreachable:
		return fmt.Sprintf("check that the host is up and that no firewall drops port %d; a slow way wants a longer ConnectTimeout in ~/.ssh/config; see: %s true", e.Port, e.command())
	case DialClosed:
		return fmt.Sprintf("its sshd may be limiting connections (MaxStartups, hosts.deny, fail2ban), or let nobody in at present (/etc/nologin, PAM); see its log, or: %s true", e.command())
	case DialProtocol:
		return fmt.Sprintf("see whether ssh can: %s -v true", e.command())
	}
	return ""
}

// LostError is a connection that ended without being closed from this side.
type LostError struct {
	Peer
	Silence time.Duration // how long nothing was heard; 0 where the line broke
	Err     error
}

// Error says how it ended.
func (e *LostError) Error() string {
	if e.Silence > 0 {
		return fmt.Sprintf("%s: connection lost: nothing heard for %v", e.Peer, e.Silence.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("%s: connection lost: %v", e.Peer, e.Err)
}

// Unwrap is what the connection said last.
func (e *LostError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *LostError) Hint() string {
	return fmt.Sprintf("look at %s and the network to it, then run again; see: %s true", e.Name, e.command())
}

// A throughError is a jump host's word that it cannot reach the next host.
type throughError struct{ refused *xssh.OpenChannelError }

func (e *throughError) Error() string {
	return "the jump host says: " + strings.TrimSpace(e.refused.Message)
}

// reason sorts the jump host's words, which are its C library's.
func (e *throughError) reason() DialReason {
	switch words := strings.ToLower(e.refused.Message); {
	case strings.Contains(words, "refused"):
		return DialRefused
	case strings.Contains(words, "timed out"):
		return DialTimeout
	case strings.Contains(words, "resol"), strings.Contains(words, "name or service"):
		return DialNameUnknown
	}
	return DialUnreachable
}

// dialError sorts what a failed connection said.
func dialError(ctx context.Context, p Peer, timeout time.Duration, err error) *DialError {
	e := &DialError{Peer: p, Timeout: timeout, Err: err, Reason: DialProtocol}
	var dns *net.DNSError
	var timed net.Error
	var through *throughError
	switch {
	case errors.As(err, &through):
		e.Reason = through.reason()
	case ctx.Err() != nil:
		e.Reason, e.Err = DialCancelled, context.Cause(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.Err = ctx.Err()
		}
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Reason = DialNameUnknown
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Reason = DialRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.As(err, &dns) && !dns.IsTimeout:
		e.Reason = DialUnreachable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		e.Reason = DialTimeout
	case hungUp(err):
		e.Reason = DialClosed
	}
	return e
}
