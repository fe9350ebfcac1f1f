package sshclient

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

func TestHostKeyUnknown(t *testing.T) {
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	d := s.Start("n1").Named()
	_, err := dialer(s).Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Problem != HostKeyUnknown {
		t.Fatalf("%T: %v", err, err)
	}
	hint := hints(t, err, "n1", d.Port, s.User)
	if _, fingerprint, _ := strings.Cut(s.Tool("ssh-keygen", "-lf", d.HostKey+".pub"), " "); !strings.Contains(hint, strings.Fields(fingerprint)[0]) {
		t.Errorf("hint %q has not the fingerprint %q", hint, fingerprint)
	}
	// The command in the hint must make the host known.
	_, command, ok := strings.Cut(hint, "if it is the same: ")
	if !ok || !strings.HasPrefix(command, "ssh-keyscan ") {
		t.Fatalf("hint %q", hint)
	}
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	dial(t, dialer(s), "n1")
}

func TestHostKeyChanged(t *testing.T) {
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	d := s.Start("n1").Named()
	old := s.NewKey("old", "ed25519", "")
	s.Add(".ssh/known_hosts", fmt.Sprintf("# a comment\nother %s\n[127.0.0.1]:%d %s\n", sshtest.PublicKey(t, old), d.Port, sshtest.PublicKey(t, old)))
	_, err := dialer(s).Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Problem != HostKeyChanged || wrong.Where != s.Path(".ssh/known_hosts")+":3" {
		t.Fatalf("%T: %v", err, err)
	}
	hint := hints(t, err, "n1", d.Port, s.User)
	_, command, _ := strings.Cut(hint, "only if it is the same: ")
	if !strings.HasPrefix(command, "ssh-keygen -f ") || !strings.Contains(command, " -R ") {
		t.Fatalf("hint %q", hint)
	}
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	dial(t, dialer(s), "n1")
}

// TestHostKeyKinds tests a host with two kinds of keys. Only one of them is known, and the host prefers the other one.
func TestHostKeyKinds(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			s := sshtest.New(t)
			s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
			other := s.NewKey("host_"+kind, kind, "")
			second := s.NewKey("host_second", map[string]string{"ed25519": "rsa", "ecdsa": "ed25519", "rsa": "ecdsa"}[kind], "")
			d := s.Start("n1", "HostKey "+second, "HostKey "+other).Named()
			s.Add(".ssh/known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s\n", d.Port, sshtest.PublicKey(t, other)))
			dial(t, dialer(s), "n1")
		})
	}
}

func TestHostCertificate(t *testing.T) {
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	ca := s.NewKey("ca", "ed25519", "")
	for _, test := range []struct {
		name, principals, known, want string
		more                          []string
	}{
		{name: "good", principals: "127.0.0.1", known: "@cert-authority * CA"},
		{name: "pattern", principals: "127.0.0.*", known: "@cert-authority [127.0.0.*]:* CA"},
		{name: "another host's", principals: "other", known: "@cert-authority * CA", want: "principal"},
		{name: "expired", principals: "127.0.0.1", known: "@cert-authority * CA", more: []string{"-V", "20200101:20200102"}, want: "expired"},
		{name: "authority for others", principals: "127.0.0.1", known: "@cert-authority *.example.org CA", want: "not known"},
		{name: "revoked authority", principals: "127.0.0.1", known: "@cert-authority * CA\n@revoked * CA", want: "revoked"},
		{name: "expired, plain key known", principals: "127.0.0.1", known: "@cert-authority * CA\n[127.0.0.1]:PORT HOST", more: []string{"-V", "20200101:20200102"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.For(t)
			name := strings.ReplaceAll(strings.ReplaceAll(test.name, " ", "-"), ",", "")
			name = strings.ReplaceAll(name, "'", "")
			key := s.NewKey(name+"/host_ed25519", "ed25519", "")
			args := append([]string{"-q", "-s", ca, "-I", "host", "-h", "-n", test.principals}, test.more...)
			s.Tool("ssh-keygen", append(args, key+".pub")...)
			d := s.Start(name, "HostCertificate "+key+"-cert.pub")
			s.Write(".ssh/config", "")
			d.Named()
			s.Write(".ssh/known_hosts", strings.NewReplacer("CA", sshtest.PublicKey(t, ca), "PORT", fmt.Sprint(d.Port), "HOST", d.Public()).Replace(test.known)+"\n")
			c, err := dialer(s).Dial(t.Context(), name)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
				return
			}
			var wrong *HostKeyError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestHostKeyRevoked(t *testing.T) {
	s, d := sshtest.OneHost(t)
	s.Add(".ssh/known_hosts", "@revoked * "+d.Public()+"\n")
	_, err := dialer(s).Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Problem != HostKeyRevoked {
		t.Fatalf("%T: %v", err, err)
	}
	hints(t, err, "n1", d.Port, s.User)
	s.Write(".ssh/known_hosts", "")
	d.Known()
	s.Write(".ssh/config", "RevokedHostKeys "+s.Write("revoked", d.Public()+"\n")+"\n")
	d.Named()
	if _, err := dialer(s).Dial(t.Context(), "n1"); !errors.As(err, &wrong) || wrong.Problem != HostKeyRevoked {
		t.Fatalf("RevokedHostKeys: %T: %v", err, err)
	}
}
