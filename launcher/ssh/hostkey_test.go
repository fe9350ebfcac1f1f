package ssh

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestHostKeyUnknown(t *testing.T) {
	s := newSite(t)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
	d := s.sshd("n1").named()
	_, err := s.dialer().Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Problem != HostKeyUnknown {
		t.Fatalf("%T: %v", err, err)
	}
	hint := hints(t, err, "n1", d.port, s.user)
	if _, fingerprint, _ := strings.Cut(s.tool("ssh-keygen", "-lf", d.hostKey+".pub"), " "); !strings.Contains(hint, strings.Fields(fingerprint)[0]) {
		t.Errorf("hint %q has not the fingerprint %q", hint, fingerprint)
	}
	// The hint's own command makes the host known.
	_, command, ok := strings.Cut(hint, "where it is the same: ")
	if !ok || !strings.HasPrefix(command, "ssh-keyscan ") {
		t.Fatalf("hint %q", hint)
	}
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	dial(t, s.dialer(), "n1")
}

func TestHostKeyChanged(t *testing.T) {
	s := newSite(t)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
	d := s.sshd("n1").named()
	old := s.newKey("old", "ed25519", "")
	s.add(".ssh/known_hosts", fmt.Sprintf("# a comment\nother %s\n[127.0.0.1]:%d %s\n", publicKey(t, old), d.port, publicKey(t, old)))
	_, err := s.dialer().Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Problem != HostKeyChanged || wrong.Where != s.path(".ssh/known_hosts")+":3" {
		t.Fatalf("%T: %v", err, err)
	}
	hint := hints(t, err, "n1", d.port, s.user)
	_, command, _ := strings.Cut(hint, "only where it is the same: ")
	if !strings.HasPrefix(command, "ssh-keygen -f ") || !strings.Contains(command, " -R ") {
		t.Fatalf("hint %q", hint)
	}
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	dial(t, s.dialer(), "n1")
}

// TestHostKeyKinds knows one kind of key of a host that has two, and prefers to
// show the other.
func TestHostKeyKinds(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			s := newSite(t)
			s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
			other := s.newKey("host_"+kind, kind, "")
			second := s.newKey("host_second", map[string]string{"ed25519": "rsa", "ecdsa": "ed25519", "rsa": "ecdsa"}[kind], "")
			d := s.sshd("n1", "HostKey "+second, "HostKey "+other).named()
			s.add(".ssh/known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s\n", d.port, publicKey(t, other)))
			dial(t, s.dialer(), "n1")
		})
	}
}

func TestHostCertificate(t *testing.T) {
	s := newSite(t)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
	ca := s.newKey("ca", "ed25519", "")
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
			s.t = t
			name := strings.ReplaceAll(strings.ReplaceAll(test.name, " ", "-"), ",", "")
			name = strings.ReplaceAll(name, "'", "")
			key := s.newKey(name+"/host_ed25519", "ed25519", "")
			args := append([]string{"-q", "-s", ca, "-I", "host", "-h", "-n", test.principals}, test.more...)
			s.tool("ssh-keygen", append(args, key+".pub")...)
			d := s.sshd(name, "HostCertificate "+key+"-cert.pub")
			s.write(".ssh/config", "")
			d.named()
			s.write(".ssh/known_hosts", strings.NewReplacer("CA", publicKey(t, ca), "PORT", fmt.Sprint(d.port), "HOST", d.public()).Replace(test.known)+"\n")
			c, err := s.dialer().Dial(t.Context(), name)
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
	s, d := oneHost(t)
	s.add(".ssh/known_hosts", "@revoked * "+d.public()+"\n")
	_, err := s.dialer().Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Problem != HostKeyRevoked {
		t.Fatalf("%T: %v", err, err)
	}
	hints(t, err, "n1", d.port, s.user)
	s.write(".ssh/known_hosts", "")
	d.known()
	s.write(".ssh/config", "RevokedHostKeys "+s.write("revoked", d.public()+"\n")+"\n")
	d.named()
	if _, err := s.dialer().Dial(t.Context(), "n1"); !errors.As(err, &wrong) || wrong.Problem != HostKeyRevoked {
		t.Fatalf("RevokedHostKeys: %T: %v", err, err)
	}
}
