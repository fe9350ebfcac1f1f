package sshclient

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/remote/shell"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
)

// HostKeyProblem says what is wrong with the key of a host.
type HostKeyProblem string

// The problems with the key of a host.
const (
	HostKeyUnknown     HostKeyProblem = "unknown"     // no known_hosts file has the key for this host
	HostKeyChanged     HostKeyProblem = "changed"     // a known_hosts file has another key of this type for this host
	HostKeyRevoked     HostKeyProblem = "revoked"     // a @revoked line, or RevokedHostKeys, names the key
	HostKeyCertificate HostKeyProblem = "certificate" // the certificate of the host is not valid
)

// HostKeyError is the error if Dial does not accept the key of a host.
type HostKeyError struct {
	Peer
	Problem     HostKeyProblem
	Type        string   // the type of the key: "ssh-ed25519"
	Fingerprint string   // the fingerprint of the key: "SHA256:..."
	Lookup      string   // the name that was looked up: "host", "[host]:port", or HostKeyAlias
	Files       []string // the known_hosts files; a new key goes into the first one
	Where       string   // FILE:LINE of the line that contradicts the key; empty if no line does
	Err         error    // why a certificate is not valid
}

// Error says what is wrong with the key.
func (e *HostKeyError) Error() string {
	shown := fmt.Sprintf("%s: its %s host key %s", e.Peer, e.Type, e.Fingerprint)
	switch e.Problem {
	case HostKeyChanged:
		return fmt.Sprintf("%s is not the one known for %q (%s): the host was reinstalled, or the connection is intercepted", shown, e.Lookup, e.Where)
	case HostKeyRevoked:
		return fmt.Sprintf("%s is revoked (%s)", shown, e.Where)
	case HostKeyCertificate:
		return fmt.Sprintf("%s has a certificate that is not valid: %v", shown, e.Err)
	}
	where := strings.Join(e.Files, " or ")
	if where == "" {
		where = "any known_hosts file"
	}
	if e.Where != "" {
		return fmt.Sprintf("%s is not known for %q, which has a key of another type (%s)", shown, e.Lookup, e.Where)
	}
	return fmt.Sprintf("%s is not known for %q in %s", shown, e.Lookup, where)
}

// Unwrap returns why a certificate is not valid.
func (e *HostKeyError) Unwrap() error { return e.Err }

// Lasting returns true, because it does not help to try again later.
func (e *HostKeyError) Lasting() bool { return true }

// Hint returns the commands that add the key to known_hosts, and tells the user to compare its
// fingerprint first.
func (e *HostKeyError) Hint() string {
	file := "~/.ssh/known_hosts"
	if len(e.Files) > 0 {
		file = shell.Quote(e.Files[0])
	}
	scan := fmt.Sprintf("ssh-keyscan -t %s -p %d %s", scanType(e.Type), e.Port, e.Host)
	if last := len(e.Via) - 1; last >= 0 {
		scan = jumpCommand(e.Via[:last], e.Via[last]) + " " + scan
	}
	if e.Lookup != lookupName(e.Host, e.Port) { // ssh_config sets HostKeyAlias
		scan += " | sed 's/^[^ ]*/" + e.Lookup + "/'"
	}
	scan += " >> " + file
	compare := "compare " + e.Fingerprint + " with what the host itself prints for: ssh-keygen -lf /etc/ssh/ssh_host_" +
		scanType(e.Type) + "_key.pub"
	switch e.Problem {
	case HostKeyUnknown:
		if len(e.Files) == 0 {
			return "name a file for this host with UserKnownHostsFile in ~/.ssh/config: without one, no host is known"
		}
	case HostKeyChanged:
		at := file
		if i := strings.LastIndexByte(e.Where, ':'); i > 0 {
			at = shell.Quote(e.Where[:i])
		}
		return fmt.Sprintf("%s; only if it is the same: ssh-keygen -f %s -R %s && %s", compare, at, shell.Quote(e.Lookup), scan)
	case HostKeyRevoked:
		return "do not use this host before its administrator has given it a new key"
	case HostKeyCertificate:
		return "ask the administrator of the host to renew its certificate (on the host: ssh-keygen -Lf /etc/ssh/ssh_host_" + scanType(e.Type) + "_key-cert.pub)"
	}
	return compare + "; if it is the same: " + scan
}

// jumpCommand returns an ssh command line that runs a command on the jump host host, through the jump hosts in through.
// All names are written as in ProxyJump.
func jumpCommand(through []string, host string) string {
	command := "ssh"
	if len(through) > 0 {
		command += " -J " + shell.Quote(strings.Join(through, ","))
	}
	if t, err := sshconfig.ParseHost(host); err == nil { // ssh does not accept HOST:PORT
		if host = t.Name; t.User != "" {
			host = t.User + "@" + host
		}
		if t.Port != 0 {
			command += fmt.Sprintf(" -p %d", t.Port)
		}
	}
	return command + " " + shell.Quote(host)
}
