package ssh

import (
	"fmt"
	"strings"
)

// HostKeyProblem is what is wrong with the key that a host showed.
type HostKeyProblem string

// What can be wrong with a host's key.
const (
	HostKeyUnknown     HostKeyProblem = "unknown"     // no known_hosts file names the host with such a key
	HostKeyChanged     HostKeyProblem = "changed"     // another key of this type is known for it
	HostKeyRevoked     HostKeyProblem = "revoked"     // a @revoked line, or RevokedHostKeys, names it
	HostKeyCertificate HostKeyProblem = "certificate" // its certificate does not hold
)

// HostKeyError is a host that did not prove that it is the one meant.
type HostKeyError struct {
	Peer
	Problem     HostKeyProblem
	Type        string   // of the key shown: "ssh-ed25519"
	Fingerprint string   // of the key shown: "SHA256:..."
	Lookup      string   // the name looked up: "host", "[host]:port", or HostKeyAlias
	Files       []string // the known_hosts files read; the first is the one to write to
	Where       string   // FILE:LINE that is at odds, "" where there is none
	Err         error    // why a certificate does not hold
}

// Error says what is wrong with the key.
func (e *HostKeyError) Error() string {
	shown := fmt.Sprintf("%s: its %s host key %s", e.Peer, e.Type, e.Fingerprint)
	switch e.Problem {
	case HostKeyChanged:
		return fmt.Sprintf("%s is not the one known for %q (%s): the host was set up anew, or somebody stands between", shown, e.Lookup, e.Where)
	case HostKeyRevoked:
		return fmt.Sprintf("%s is revoked (%s)", shown, e.Where)
	case HostKeyCertificate:
		return fmt.Sprintf("%s has a certificate that does not hold: %v", shown, e.Err)
	}
	where := strings.Join(e.Files, " or ")
	if where == "" {
		where = "any known_hosts file"
	}
	if e.Where != "" {
		return fmt.Sprintf("%s is not known for %q, only a key of another kind is (%s)", shown, e.Lookup, e.Where)
	}
	return fmt.Sprintf("%s is not known for %q in %s", shown, e.Lookup, where)
}

// Unwrap is why a certificate does not hold.
func (e *HostKeyError) Unwrap() error { return e.Err }

// Lasting implements launcher.Lasting.
func (e *HostKeyError) Lasting() bool { return true }

// Hint gives the exact commands that make the key known, for after its
// fingerprint was compared.
func (e *HostKeyError) Hint() string {
	file := "~/.ssh/known_hosts"
	if len(e.Files) > 0 {
		file = quote(e.Files[0])
	}
	scan := fmt.Sprintf("ssh-keyscan -t %s -p %d %s", scanType(e.Type), e.Port, e.Host)
	if last := len(e.Via) - 1; last >= 0 {
		scan = jumpCommand(e.Via[:last], e.Via[last]) + " " + scan
	}
	if e.Lookup != lookupName(e.Host, e.Port) { // HostKeyAlias
		scan += " | sed 's/^[^ ]*/" + e.Lookup + "/'"
	}
	scan += " >> " + file
	compare := "compare " + e.Fingerprint + " with what the host itself prints for: ssh-keygen -lf /etc/ssh/ssh_host_" +
		scanType(e.Type) + "_key.pub"
	switch e.Problem {
	case HostKeyUnknown:
		if len(e.Files) == 0 {
			return "let UserKnownHostsFile in ~/.ssh/config name a file for this host: with none, no host is known"
		}
	case HostKeyChanged:
		at := file
		if i := strings.LastIndexByte(e.Where, ':'); i > 0 {
			at = quote(e.Where[:i])
		}
		return fmt.Sprintf("%s; only where it is the same: ssh-keygen -f %s -R %s && %s", compare, at, quote(e.Lookup), scan)
	case HostKeyRevoked:
		return "do not use this host before its administrator gave it a new key"
	case HostKeyCertificate:
		return "have the host's administrator renew its certificate (on the host: ssh-keygen -Lf /etc/ssh/ssh_host_" + scanType(e.Type) + "_key-cert.pub)"
	}
	return compare + "; where it is the same: " + scan
}

// jumpCommand is the ssh command line that runs something on a jump host, which is
// reached through others; all of them are as ProxyJump has them.
func jumpCommand(through []string, host string) string {
	command := "ssh"
	if len(through) > 0 {
		command += " -J " + quote(strings.Join(through, ","))
	}
	if t, err := parseTarget(host); err == nil { // ssh takes no HOST:PORT
		if host = t.host; t.user != "" {
			host = t.user + "@" + host
		}
		if t.port != 0 {
			command += fmt.Sprintf(" -p %d", t.port)
		}
	}
	return command + " " + quote(host)
}
