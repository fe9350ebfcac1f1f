package sshclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/remote/shell"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	xssh "golang.org/x/crypto/ssh"
)

// AuthError is the error if a host refuses the login.
type AuthError struct {
	Peer
	Tried       []string  // the keys that were offered: "key ~/.ssh/id_ed25519 (SHA256:...): refused"
	Skipped     []Skipped // the keys that could not be offered
	Methods     []string  // the methods that the host accepts: "publickey", "password"
	Unsupported []string  // the methods in ssh_config that this package does not support
	Err         error     // what the host sent last; nil if it sent nothing
}

// Error names the user and the keys that were tried.
func (e *AuthError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the login of user %q was refused: ", e.Peer, e.User)
	if len(e.Tried) == 0 {
		b.WriteString("there was no key to try")
	} else {
		b.WriteString("tried " + strings.Join(e.Tried, ", "))
	}
	if len(e.Skipped) > 0 {
		b.WriteString("; skipped " + joinSkipped(e.Skipped))
	}
	if len(e.Methods) > 0 {
		b.WriteString("; the host accepts " + strings.Join(e.Methods, ", "))
	}
	if len(e.Unsupported) > 0 {
		b.WriteString("; ssh_config also asks for " + strings.Join(e.Unsupported, ", ") + ", which gangrun does not support")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns what the host sent last.
func (e *AuthError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *AuthError) Hint() string {
	for _, s := range e.Skipped {
		switch {
		case errors.Is(s.Err, errEncrypted):
			return "add the key to ssh-agent first (ssh-add), or run gangrun on a terminal, where it asks for the passphrase"
		case errors.Is(s.Err, errNoKeys):
			return "gangrun logs in only with keys: remove PubkeyAuthentication no from ~/.ssh/config for this host"
		case errors.As(s.Err, new(*modeError)):
			return "chmod 600 " + shell.Quote(s.Name)
		}
	}
	if e.tooMany() {
		return fmt.Sprintf("the host allows only some tries: name the right key in ~/.ssh/config (Host %s, IdentityFile, IdentitiesOnly yes)", e.Name)
	}
	copyID := "ssh-copy-id"
	if e.Port != sshconfig.DefaultPort {
		copyID += fmt.Sprintf(" -p %d", e.Port)
	}
	copyID += " " + shell.Quote(e.User+"@"+e.Name)
	if len(e.Tried) == 0 {
		return fmt.Sprintf("name your key in ~/.ssh/config (IdentityFile), or make one: ssh-keygen -t ed25519; then: %s; to test the login: %s true", copyID, e.Command())
	}
	return fmt.Sprintf("if %q is the right user: %s (else set User in ~/.ssh/config, or write USER@%s); to test the login: %s true", e.User, copyID, e.Name, e.Command())
}

// Lasting returns true if it does not help to try again later. It returns false only if the host has refused
// the login because of too many failed logins.
func (e *AuthError) Lasting() bool { return !e.tooMany() }

// tooMany reports whether the host ended the login after too many keys. SSH has no code for that, so tooMany looks for
// the text that sshd sends.
func (e *AuthError) tooMany() bool {
	return e.Err != nil && strings.Contains(e.Err.Error(), "oo many authentication failures")
}

// DialReason says why a host was not reached.
type DialReason string

// The reasons why a host was not reached.
const (
	DialRefused     DialReason = "refused"        // nothing listens on the port
	DialUnreachable DialReason = "unreachable"    // no route leads to the host
	DialTimeout     DialReason = "timeout"        // the host did not answer in time
	DialNameUnknown DialReason = "name-not-found" // the name of the host has no address
	DialClosed      DialReason = "closed"         // the host closed the connection before the end of the login
	DialProtocol    DialReason = "protocol"       // the answer is not SSH, or the two sides have no algorithm in common
	DialCancelled   DialReason = "cancelled"      // the context of the caller ended
)

// DialError is the error if a host could not be reached.
type DialError struct {
	Peer
	Reason DialReason
	Limit  time.Duration // the time limit, for DialTimeout
	Err    error
}

// Error names the host and the reason.
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
		return fmt.Sprintf("%s: no answer within %v", e.Peer, e.Limit)
	case DialNameUnknown:
		return fmt.Sprintf("%s: the name %q has no address", e.Peer, e.Host)
	case DialClosed:
		return fmt.Sprintf("%s: it closed the connection before the end of the login: %v", e.Peer, e.Err)
	case DialCancelled:
		return fmt.Sprintf("%s: cancelled: %v", e.Peer, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Peer, e.Err)
}

// Timeout reports whether the host did not answer in time.
func (e *DialError) Timeout() bool { return e.Reason == DialTimeout }

// Unwrap returns the error of the system.
func (e *DialError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *DialError) Hint() string {
	if e.Reason != DialNameUnknown && errors.As(e.Err, new(*net.DNSError)) {
		return fmt.Sprintf("no name server answers for %q; to test this: getent hosts %s; or give its address as HostName in ~/.ssh/config", e.Host, e.Host)
	}
	switch e.Reason {
	case DialRefused:
		return fmt.Sprintf("start sshd there, or name the right port (Port in ~/.ssh/config); to test the login: %s true", e.Command())
	case DialNameUnknown:
		return fmt.Sprintf("check the spelling of %q, or give its address as HostName in ~/.ssh/config", e.Name)
	case DialTimeout, DialUnreachable:
		return fmt.Sprintf("check that the host is up and that no firewall drops port %d; a slow network needs a longer ConnectTimeout in ~/.ssh/config; to test the login: %s true", e.Port, e.Command())
	case DialClosed:
		return fmt.Sprintf("its sshd may be limiting connections (MaxStartups, hosts.deny, fail2ban), or refuse all logins at present (/etc/nologin, PAM); see its log, or: %s true", e.Command())
	case DialProtocol:
		return fmt.Sprintf("see whether ssh can: %s -v true", e.Command())
	}
	return ""
}

// LostError is the error if a connection ended although this side did not close it.
type LostError struct {
	Peer
	Silence time.Duration // how long the host had been silent; 0 if the connection broke
	Err     error
}

// Error says how the connection ended.
func (e *LostError) Error() string {
	if e.Silence > 0 {
		return fmt.Sprintf("%s: connection lost: nothing received for %v", e.Peer, e.Silence.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("%s: connection lost: %v", e.Peer, e.Err)
}

// Timeout reports whether the connection ended because the host was silent.
func (e *LostError) Timeout() bool { return e.Silence > 0 }

// Unwrap returns the error of the connection.
func (e *LostError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *LostError) Hint() string {
	return fmt.Sprintf("look at %s and the network to it, then run again; to test the login: %s true", e.Name, e.Command())
}

// throughError is the error if a jump host cannot reach the next host.
type throughError struct{ refused *xssh.OpenChannelError }

func (e *throughError) Error() string {
	return "the jump host says: " + strings.TrimSpace(e.refused.Message)
}

// reason returns the reason that the jump host gives. SSH has no codes for these reasons, so reason looks for the texts
// of the C library of the jump host.
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

// dialError returns the error for a connection that failed with err.
func dialError(ctx context.Context, p Peer, timeout time.Duration, err error) *DialError {
	e := &DialError{Peer: p, Limit: timeout, Err: err, Reason: DialProtocol}
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
