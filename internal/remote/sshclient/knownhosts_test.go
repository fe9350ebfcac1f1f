package sshclient

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

// knownFor returns what the text of a known_hosts file says about a host and a port.
func knownFor(t *testing.T, s *sshtest.Site, text, host string, port int) (sshconfig.Endpoint, knownHost) {
	t.Helper()
	s.Write("known", text)
	e := sshconfig.Endpoint{Name: host, Host: host, Port: port, User: "u", HostKeys: sshconfig.HostKeys{Files: []string{s.Path("known"), s.Path("absent")}}}
	k, err := readKnown(e)
	if err != nil {
		t.Fatal(err)
	}
	return e, k
}

func TestKnownHosts(t *testing.T) {
	s := sshtest.New(t)
	ed, ed2 := sshtest.PublicKey(t, s.NewKey("a", "ed25519", "")), sshtest.PublicKey(t, s.NewKey("b", "ed25519", ""))
	rsa := sshtest.PublicKey(t, s.NewKey("c", "rsa", ""))
	hashed := s.Write("hashed", "n1 "+ed+"\n[n1]:2222 "+ed2+"\n")
	s.Tool("ssh-keygen", "-q", "-H", "-f", hashed)
	for _, test := range []struct {
		name, text, host string
		port             int
		shown            string
		want             HostKeyProblem // "" if there is no problem
	}{
		{"plain", "n1 ED\n", "n1", 22, ed, ""},
		{"case of the name", "N1 ED\n", "n1", 22, ed, ""},
		{"list", "n0,n1,10.0.0.1 ED\n", "n1", 22, ed, ""},
		{"pattern", "n*,!n2 ED\n", "n1", 22, ed, ""},
		{"negated pattern", "n*,!n2 ED\n", "n2", 22, ed, HostKeyUnknown},
		{"nothing", "", "n1", 22, ed, HostKeyUnknown},
		{"another host", "n2 ED\n", "n1", 22, ed, HostKeyUnknown},
		{"another key", "n1 ED\n", "n1", 22, ed2, HostKeyChanged},
		{"one of two", "n1 ED\nn1 ED2\n", "n1", 22, ed2, ""},
		{"another kind", "n1 RSA\n", "n1", 22, ed, HostKeyUnknown},
		{"port", "[n1]:2222 ED\n", "n1", 2222, ed, ""},
		{"another port", "[n1]:2222 ED\n", "n1", 2223, ed, HostKeyUnknown},
		{"another port than 22", "[n1]:2222 ED\n", "n1", 22, ed, HostKeyUnknown},
		{"name alone", "n1 ED\n", "n1", 2222, ed, ""},
		{"name alone, port has another", "n1 ED\n[n1]:2222 ED2\n", "n1", 2222, ed, HostKeyChanged},
		{"star means every port", "* ED\n", "n1", 2222, ed, ""},
		{"IPv6", "fe80::1 ED\n[::1]:2222 ED\n", "fe80::1", 22, ed, ""},
		{"IPv6 with port", "[::1]:2222 ED\n", "::1", 2222, ed, ""},
		{"hashed", "HASHED", "n1", 22, ed, ""},
		{"hashed with port", "HASHED", "n1", 2222, ed2, ""},
		{"hashed, another key", "HASHED", "n1", 22, ed2, HostKeyChanged},
		{"hashed, another host", "HASHED", "n2", 22, ed, HostKeyUnknown},
		{"revoked", "n1 ED\n@revoked * ED\n", "n1", 22, ed, HostKeyRevoked},
		{"revoked elsewhere", "n1 ED\n@revoked other ED\n", "n1", 22, ed, HostKeyRevoked},
		{"an authority is no host's key", "@cert-authority * ED\n", "n1", 22, ed, HostKeyUnknown},
		{"an unknown marker", "@trusted n1 ED\n", "n1", 22, ed, HostKeyUnknown},
		{"lines that cannot be read", "n1 1024 35 123456\nn1 ssh-new AAAA\nn1\n|1|x ED\n|2|a|b ED\n# n1 ED2\n\tn1\tED comment\r\n", "n1", 22, ed, ""},
		{"kind by another name", "n1 " + strings.Replace(ed, "ssh-ed25519", "ssh-rsa", 1) + "\n", "n1", 22, ed, HostKeyUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.NewReplacer("HASHED", s.Read("hashed"), "ED2", ed2, "ED", ed, "RSA", rsa).Replace(test.text)
			e, known := knownFor(t, s, text, test.host, test.port)
			shown, err := parseKey(test.shown)
			if err != nil {
				t.Fatal(err)
			}
			err = known.check(e, newPeer(e), shown, time.Now())
			var wrong *HostKeyError
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.As(err, &wrong) || wrong.Problem != test.want {
				t.Errorf("%v, want %s", err, test.want)
			} else if wrong.Hint() == "" {
				t.Error("no hint")
			}
			// ssh-keygen must find a line for the host exactly if gangrun does.
			name, _ := lookup(e)
			found := exec.Command("ssh-keygen", "-F", name, "-f", s.Path("known")).Run() == nil
			if ours := len(known.keys)+len(known.authorities) > 0; ours && !found {
				t.Errorf("lines are found for %q, ssh-keygen finds none", name)
			}
		})
	}
}

func TestRevokedLineThatCannotBeRead(t *testing.T) {
	s := sshtest.New(t)
	for _, text := range []string{"@revoked * ssh-new AAAA\n", "@revoked *\n"} {
		s.Write("known", text)
		_, err := readKnown(sshconfig.Endpoint{Host: "n1", Port: 22, HostKeys: sshconfig.HostKeys{Files: []string{s.Path("known")}}})
		var wrong *sshconfig.Error
		if !errors.As(err, &wrong) || wrong.Line != 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"SSHKRL\n\x00", "not a key\n"} {
		if _, err := readKnown(sshconfig.Endpoint{Host: "n1", Port: 22, HostKeys: sshconfig.HostKeys{Revoked: s.Write("revoked", text)}}); err == nil {
			t.Errorf("%q is taken for revoked keys", text)
		}
	}
	if _, err := readKnown(sshconfig.Endpoint{Host: "n1", Port: 22, HostKeys: sshconfig.HostKeys{Revoked: s.Path("absent")}}); err == nil {
		t.Error("a file of revoked keys that is not there revokes nothing")
	}
}

func TestHostKeyAlgorithms(t *testing.T) {
	s := sshtest.New(t)
	ed := sshtest.PublicKey(t, s.NewKey("a", "ed25519", ""))
	rsa := sshtest.PublicKey(t, s.NewKey("c", "rsa", ""))
	for _, test := range []struct {
		text  string
		first []string
		certs bool
	}{
		{"n1 " + ed + "\n", []string{"ssh-ed25519"}, false},
		{"n1 " + rsa + "\n", []string{"rsa-sha2-256", "rsa-sha2-512"}, false},
		{"@cert-authority * " + ed + "\nn1 " + rsa + "\n", nil, true},
	} {
		_, known := knownFor(t, s, test.text, "n1", 22)
		got := known.algorithms(nil)
		if !slices.Equal(got[:len(test.first)], test.first) {
			t.Errorf("%.10q: %q", test.text, got)
		}
		if certs := strings.Contains(got[0], "cert"); certs != test.certs || slices.ContainsFunc(got, func(a string) bool { return strings.Contains(a, "cert") }) != test.certs {
			t.Errorf("%.10q: certificates %v: %q", test.text, certs, got)
		}
	}
}

func TestHostKeyHints(t *testing.T) {
	for _, test := range []struct {
		err  HostKeyError
		want string
	}{
		{HostKeyError{Peer: Peer{Name: "n1", Host: "10.0.0.1", Port: 2222}, Type: "ssh-rsa", Lookup: "[10.0.0.1]:2222", Files: []string{"/h/known hosts"}, Problem: HostKeyUnknown},
			"ssh-keyscan -t rsa -p 2222 10.0.0.1 >> '/h/known hosts'"},
		{HostKeyError{Peer: Peer{Host: "n1", Port: 22, Via: []string{"gw", "u@gw2"}}, Type: "ecdsa-sha2-nistp256", Lookup: "n1", Files: []string{"/k"}, Problem: HostKeyUnknown},
			"ssh -J gw u@gw2 ssh-keyscan -t ecdsa -p 22 n1 >> /k"},
		{HostKeyError{Peer: Peer{Host: "n1", Port: 22, Via: []string{"u@gw:2222"}}, Type: "ssh-ed25519", Lookup: "n1", Files: []string{"/k"}, Problem: HostKeyUnknown},
			"ssh -p 2222 u@gw ssh-keyscan -t ed25519 -p 22 n1 >> /k"},
		{HostKeyError{Peer: Peer{Host: "n1", Port: 22}, Type: "ssh-ed25519", Lookup: "n1", Problem: HostKeyUnknown},
			"without one, no host is known"},
		{HostKeyError{Peer: Peer{Host: "n1", Port: 22}, Type: "ssh-ed25519", Lookup: "cluster", Files: []string{"/k"}, Problem: HostKeyUnknown},
			"ssh-keyscan -t ed25519 -p 22 n1 | sed 's/^[^ ]*/cluster/' >> /k"},
		{HostKeyError{Peer: Peer{Host: "n1", Port: 22}, Type: "ssh-ed25519", Lookup: "n1", Files: []string{"/k", "/g"}, Where: "/g:3", Problem: HostKeyChanged},
			"ssh-keygen -f /g -R n1 && ssh-keyscan -t ed25519 -p 22 n1 >> /k"},
	} {
		if got := test.err.Hint(); !strings.HasSuffix(got, test.want) {
			t.Errorf("hint %q, want %q", got, test.want)
		}
	}
}

func FuzzKnownHosts(f *testing.F) {
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGfPFPGmVXyXWpP1VHvZ6XBRV3JyPXHeQ1zKxXKxqIqP"
	for _, s := range []string{"", "n1 " + key, "@revoked * " + key, "@cert-authority *.x,!y " + key, "|1|c2FsdA==|aGFzaA== " + key, "@ \t", "[::1]:22,n1 x y", "|1||| " + key} {
		f.Add(s, "n1")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		var k knownHost
		if err := k.read([]byte(text), "f", name, ""); err != nil && !strings.Contains(text, "@revoked") {
			t.Fatal(err)
		}
		for _, line := range strings.Split(text, "\n") {
			if _, hosts, _ := splitKnown(line); strings.ContainsAny(hosts, " \t") {
				t.Fatalf("names %q of %q", hosts, line)
			}
		}
		// A host whose name does not occur in the text must have no key.
		if !strings.ContainsAny(text, "*?|") && !strings.Contains(strings.ToLower(text), name) && len(k.keys) > 0 {
			t.Fatalf("%q is known by %q", name, text)
		}
	})
}

// TestKeyIsNotShown formats values that have a private key with all verbs. The key must not be in the text.
func TestKeyIsNotShown(t *testing.T) {
	s := sshtest.New(t)
	path := s.NewKey("k", "ed25519", "")
	var ring keyring
	k, err := ring.key(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := dialer(s)
	d.keys.keys = map[string]*key{path: k}
	for _, v := range []any{k, &ring, d, &lazySigner{k.public, nil}, identity{"key", newSlowSigner(&lazySigner{k.public, nil}, nil)}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			if text := fmt.Sprintf(verb, v); len(text) > 400 || strings.Contains(text, string(data[60:80])) {
				t.Errorf("%T by %s: %s", v, verb, text)
			}
		}
	}
}
