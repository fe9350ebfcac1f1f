package sshclient

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
	xssh "golang.org/x/crypto/ssh"
)

func TestAuthErrors(t *testing.T) {
	t.Run("wrong user", func(t *testing.T) {
		s, d := sshtest.OneHost(t)
		_, err := dialer(s).Dial(t.Context(), "nobody-here@n1")
		var refused *AuthError
		if !errors.As(err, &refused) || len(refused.Tried) != 1 || !strings.HasSuffix(refused.Tried[0], ": refused") {
			t.Fatalf("%T: %v", err, err)
		}
		if hint := hints(t, err, "n1", d.Port, "nobody-here"); !strings.Contains(hint, "ssh-copy-id") {
			t.Errorf("hint %q", hint)
		}
	})
	t.Run("no key", func(t *testing.T) {
		s := sshtest.New(t)
		s.Write(".ssh/authorized_keys", "")
		d := s.Start("n1").Known().Named("IdentityFile ~/.ssh/none", "GSSAPIAuthentication yes")
		_, err := dialer(s).Dial(t.Context(), "n1")
		hints(t, err, "n1", d.Port, s.User)
		for _, want := range []string{"no key to try", ".ssh/none: it does not exist", "gssapiauthentication", "publickey"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	})
	t.Run("too many keys", func(t *testing.T) {
		s, d := sshtest.OneHost(t, "MaxAuthTries 2")
		var files []string
		for i := range 4 {
			files = append(files, "IdentityFile "+s.NewKey(fmt.Sprintf("k%d", i), "ed25519", ""))
		}
		s.Write(".ssh/config", "")
		d.Named(files...)
		_, err := dialer(s).Dial(t.Context(), "n1")
		var refused *AuthError
		if !errors.As(err, &refused) {
			t.Fatalf("%T: %v", err, err)
		}
		if hint := hints(t, err, "n1", d.Port, s.User); !strings.Contains(hint, "IdentitiesOnly") {
			t.Errorf("%v: hint %q", err, hint)
		}
	})
	t.Run("open key", func(t *testing.T) {
		s, _ := sshtest.OneHost(t)
		if err := os.Chmod(s.Path(".ssh/id_ed25519"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := dialer(s).Dial(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "lets others read it") {
			t.Errorf("%v", err)
		}
	})
}

// TestLoginThatBreaks checks that a host that closes the connection during the login does not count as refusing the
// login.
func TestLoginThatBreaks(t *testing.T) {
	for name, settings := range map[string]func(hangUp func() error) *xssh.ServerConfig{
		"before a key": func(hangUp func() error) *xssh.ServerConfig {
			return &xssh.ServerConfig{NoClientAuth: true, NoClientAuthCallback: func(xssh.ConnMetadata) (*xssh.Permissions, error) { return nil, hangUp() }}
		},
		"at a key": func(hangUp func() error) *xssh.ServerConfig {
			return &xssh.ServerConfig{PublicKeyCallback: func(xssh.ConnMetadata, xssh.PublicKey) (*xssh.Permissions, error) { return nil, hangUp() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sshtest.New(t)
			s.NewKey(".ssh/id_ed25519", "ed25519", "")
			s.NewKey(".ssh/id_rsa", "rsa", "")
			hostKey := s.NewKey("host", "ed25519", "")
			text, err := os.ReadFile(hostKey)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := xssh.ParsePrivateKey(text)
			if err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var serving sync.WaitGroup
			defer serving.Wait()
			defer listener.Close()
			serving.Go(func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				config := settings(func() error { return errors.Join(errors.New("it has hung up"), conn.Close()) })
				config.AddHostKey(signer)
				if c, _, _, err := xssh.NewServerConn(conn, config); err == nil {
					t.Error("let in")
					c.Close()
				}
			})
			d := s.At("n1", listener.Addr().(*net.TCPAddr).Port, hostKey)
			d.Known().Named()
			_, err = dialer(s).Dial(t.Context(), "n1")
			var closed *DialError
			if !errors.As(err, &closed) || closed.Reason != DialClosed {
				t.Errorf("%T: %v", err, err)
			}
		})
	}
}

func TestUserCertificate(t *testing.T) {
	s := sshtest.New(t)
	ca := s.NewKey("ca", "ed25519", "")
	id := s.NewKey(".ssh/id_rsa", "rsa", "")
	s.Tool("ssh-keygen", "-q", "-s", ca, "-I", "user", "-n", s.User, id+".pub")
	s.Write(".ssh/authorized_keys", "")
	s.Start("n1", "TrustedUserCAKeys "+ca+".pub").Known().Named()
	dial(t, dialer(s), "n1")

	elsewhere := s.Path("elsewhere.pub")
	if err := os.Rename(id+"-cert.pub", elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := dialer(s).Dial(t.Context(), "n1"); err == nil {
		t.Error("let in without its certificate")
	}
	s.Add(".ssh/config", "CertificateFile "+elsewhere+"\n")
	dial(t, dialer(s), "n1")
}

// agentProcess starts a real ssh-agent and returns the path of its socket.
func agentProcess(t *testing.T, s *sshtest.Site) string {
	t.Helper()
	socket := s.Path("agent.sock")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for limit := time.Now().Add(sshtest.Longest); ; {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return socket
		}
		if time.Now().After(limit) {
			t.Fatal("ssh-agent does not answer")
		}
		time.Sleep(time.Millisecond)
	}
}

func addToAgent(t *testing.T, s *sshtest.Site, socket, key string) {
	t.Helper()
	cmd := exec.Command("ssh-add", "-q", key)
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
}

func TestAgent(t *testing.T) {
	s := sshtest.New(t)
	socket := agentProcess(t, s)
	for _, kind := range []string{"ed25519", "rsa"} {
		key := s.NewKey("k_"+kind, kind, "")
		addToAgent(t, s, socket, key)
		s.Authorize(key)
		if err := os.Remove(key); err != nil { // only the agent has the key now
			t.Fatal(err)
		}
	}
	d := s.Start("n1", "MaxAuthTries 2").Known().Named()
	for i := range 3 { // keys that the host does not accept come before the right one
		addToAgent(t, s, socket, s.NewKey(fmt.Sprintf("x%d", i), "ed25519", ""))
	}
	dialer := dialer(s)
	dialer.Config.AgentSocket = socket
	dial(t, dialer, "n1")

	for _, kind := range []string{"ed25519", "rsa"} {
		// If IdentityFile is a public key, the agent's key with this public key is used first.
		s.Write(".ssh/config", "IdentitiesOnly yes\nIdentityFile "+s.Path("k_"+kind)+".pub\n")
		d.Named()
		dial(t, dialer, "n1")
	}
	s.Write(".ssh/config", "IdentitiesOnly yes\nIdentityFile "+s.NewKey("other", "ed25519", "")+"\n")
	d.Named()
	if _, err := dialer.Dial(t.Context(), "n1"); err == nil {
		t.Error("IdentitiesOnly lets the agent's other keys in")
	}
	s.Write(".ssh/config", "IdentityAgent none\n")
	d.Named()
	if _, err := dialer.Dial(t.Context(), "n1"); err == nil {
		t.Error("IdentityAgent none asks the agent")
	}
	s.Write(".ssh/config", "IdentityAgent "+s.Path("gone.sock")+"\n")
	d.Named()
	if _, err := dialer.Dial(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "ssh-agent at "+s.Path("gone.sock")) {
		t.Errorf("an agent that is not there: %v", err)
	}
}

// TestSilentAgent checks that an agent that never answers delays the login only for a limited time.
func TestSilentAgent(t *testing.T) {
	s, d := sshtest.OneHost(t)
	l, err := net.Listen("unix", s.Path("agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Write(".ssh/config", "ConnectTimeout 1\n")
	d.Named()
	dialer := dialer(s)
	dialer.Config.AgentSocket = s.Path("agent.sock")
	_, err = dialer.Dial(t.Context(), "n1")
	var failed *DialError
	if !errors.As(err, &failed) || failed.Reason != DialTimeout {
		t.Errorf("%T: %v", err, err)
	}
}
