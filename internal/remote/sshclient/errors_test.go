package sshclient

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestLoginHints(t *testing.T) {
	peer := Peer{Name: "n1", Host: "n1", Port: 2222, User: "ada"}
	for _, test := range []struct {
		name string
		err  AuthError
		want string
	}{
		{"refused", AuthError{Tried: []string{"key /k: refused"}}, `if "ada" is the right user: ssh-copy-id -p 2222 ada@n1 (else`},
		{"no key", AuthError{}, "ssh-keygen -t ed25519; then: ssh-copy-id -p 2222 ada@n1; to test the login: ssh -p 2222 ada@n1 true"},
		{"encrypted", AuthError{Skipped: []Skipped{{"/k", errEncrypted}}}, "ssh-add"},
		{"open to others", AuthError{Skipped: []Skipped{{"/my key", &modeError{0o644}}}}, "chmod 600 '/my key'"},
		{"no keys wanted", AuthError{Skipped: []Skipped{{"all keys", errNoKeys}}}, "remove PubkeyAuthentication no from ~/.ssh/config"},
		{"too many", AuthError{Tried: []string{"key /k: refused"}, Err: errors.New("Too many authentication failures")}, "IdentitiesOnly yes"},
	} {
		test.err.Peer = peer
		if got := test.err.Hint(); !strings.Contains(got, test.want) {
			t.Errorf("%s: hint %q, want %q in it", test.name, got, test.want)
		}
	}
}

func TestNameServerHints(t *testing.T) {
	peer := Peer{Name: "gpu1", Host: "gpu1.lab", Port: 22, User: "ada"}
	for _, test := range []struct {
		name       string
		dns        net.DNSError
		text, hint string
	}{
		{"no such name", net.DNSError{Err: "no such host", Name: "gpu1.lab", IsNotFound: true}, `the name "gpu1.lab" has no address`, `check the spelling of "gpu1"`},
		{"no name server", net.DNSError{Err: "network is unreachable", Name: "gpu1.lab"}, "network is unreachable", "to test this: getent hosts gpu1.lab;"},
		{"silent name server", net.DNSError{Err: "i/o timeout", Name: "gpu1.lab", IsTimeout: true}, "i/o timeout", "to test this: getent hosts gpu1.lab;"},
	} {
		err := dialError(context.Background(), peer, time.Second, &net.OpError{Op: "dial", Net: "tcp", Err: &test.dns})
		if !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %q does not say %q", test.name, err, test.text)
		}
		if got := err.Hint(); !strings.Contains(got, test.hint) {
			t.Errorf("%s: hint %q, want %q in it", test.name, got, test.hint)
		}
	}
}
