package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

func TestDial(t *testing.T) {
	s, d := oneHost(t)
	c := dial(t, s.dialer(), "n1")
	if got := output(t, c, "echo hello"); got != "hello\n" {
		t.Errorf("echo says %q", got)
	}
	if got := c.Peer(); got.Name != "n1" || got.Addr != d.address() || got.User != s.user {
		t.Errorf("peer %+v", got)
	}
	if err := c.Close(); err != nil || c.Err() != nil {
		t.Errorf("close: %v, %v", err, c.Err())
	}
	<-c.Done()
	if _, err := c.Exec(t.Context(), "true"); err == nil {
		t.Error("a closed client runs commands")
	}
}

// hints checks what every error must have: the host's name, its port and user
// in its text, and a hint.
func hints(t *testing.T, err error, name string, port int, user string) string {
	t.Helper()
	var h interface{ Hint() string }
	if !errors.As(err, &h) || h.Hint() == "" {
		t.Fatalf("no hint: %v", err)
	}
	for _, want := range []string{fmt.Sprintf("host %q", name), fmt.Sprintf("port %d", port), fmt.Sprintf("user %q", user)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", err, want)
		}
	}
	return h.Hint()
}

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

func TestAuthErrors(t *testing.T) {
	t.Run("wrong user", func(t *testing.T) {
		s, d := oneHost(t)
		_, err := s.dialer().Dial(t.Context(), "nobody-here@n1")
		var refused *AuthError
		if !errors.As(err, &refused) || len(refused.Tried) != 1 || !strings.HasSuffix(refused.Tried[0], ": refused") {
			t.Fatalf("%T: %v", err, err)
		}
		if hint := hints(t, err, "n1", d.port, "nobody-here"); !strings.Contains(hint, "ssh-copy-id") {
			t.Errorf("hint %q", hint)
		}
	})
	t.Run("no key", func(t *testing.T) {
		s := newSite(t)
		s.write(".ssh/authorized_keys", "")
		d := s.sshd("n1").known().named("IdentityFile ~/.ssh/none", "GSSAPIAuthentication yes")
		_, err := s.dialer().Dial(t.Context(), "n1")
		hints(t, err, "n1", d.port, s.user)
		for _, want := range []string{"no key to try", ".ssh/none: it does not exist", "gssapiauthentication", "publickey"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	})
	t.Run("too many keys", func(t *testing.T) {
		s, d := oneHost(t, "MaxAuthTries 2")
		var files []string
		for i := range 4 {
			files = append(files, "IdentityFile "+s.newKey(fmt.Sprintf("k%d", i), "ed25519", ""))
		}
		s.write(".ssh/config", "")
		d.named(files...)
		_, err := s.dialer().Dial(t.Context(), "n1")
		var refused *AuthError
		if !errors.As(err, &refused) {
			t.Fatalf("%T: %v", err, err)
		}
		if hint := hints(t, err, "n1", d.port, s.user); !strings.Contains(hint, "IdentitiesOnly") {
			t.Errorf("%v: hint %q", err, hint)
		}
	})
	t.Run("open key", func(t *testing.T) {
		s, _ := oneHost(t)
		if err := os.Chmod(s.path(".ssh/id_ed25519"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.dialer().Dial(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "lets others read it") {
			t.Errorf("%v", err)
		}
	})
}

func TestDialErrors(t *testing.T) {
	s := newSite(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := free.Addr().(*net.TCPAddr).Port
	free.Close()
	silent := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	closes := serve(t, func(net.Conn) {})
	web := serve(t, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	s.write(".ssh/config", "Host silent\nHostName 127.0.0.1\nConnectTimeout 1\n")
	for _, test := range []struct {
		host   string
		port   int
		reason DialReason
	}{
		{"127.0.0.1", refused, DialRefused},
		{"silent", silent, DialTimeout},
		{"127.0.0.1", closes, DialClosed},
		{"no-such-host.invalid", 22, DialNameUnknown},
		{"127.0.0.1", web, DialClosed},
	} {
		t.Run(string(test.reason), func(t *testing.T) {
			_, err := s.dialer().Dial(t.Context(), fmt.Sprintf("bob@%s:%d", test.host, test.port))
			var failed *DialError
			if !errors.As(err, &failed) {
				t.Fatalf("%T: %v", err, err)
			}
			if failed.Reason != test.reason && !(test.reason == DialNameUnknown && failed.Reason == DialUnreachable) {
				t.Errorf("reason %s: %v", failed.Reason, err)
			}
			hints(t, err, test.host, test.port, "bob")
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		port := serve(t, func(c net.Conn) { cancel(); io.Copy(io.Discard, c) })
		_, err := s.dialer().Dial(ctx, fmt.Sprintf("127.0.0.1:%d", port))
		var failed *DialError
		if !errors.As(err, &failed) || failed.Reason != DialCancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%T: %v", err, err)
		}
	})
}

// serve answers connections by handle until the test ends, and returns its port.
func serve(t *testing.T, handle func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() { handle(c); c.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// asker counts the questions and answers them.
type asker struct {
	asked  atomic.Int32
	answer func(n int) (string, error)
}

func (a *asker) ask(prompt string) (string, error) { return a.answer(int(a.asked.Add(1))) }

const secret = "correct horse battery"

func TestEncryptedKey(t *testing.T) {
	for _, format := range [][]string{nil, {"-m", "PEM"}} {
		t.Run(strings.Join(format, ""), func(t *testing.T) {
			s := newSite(t)
			s.authorize(s.newKey(".ssh/id_rsa", "rsa", secret, format...))
			d1, d2 := s.sshd("n1").known().named(), s.sshd("n2").known().named()
			d := s.dialer()
			_, err := d.Dial(t.Context(), "n1")
			var refused *AuthError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "no terminal") {
				t.Fatalf("without a terminal: %T: %v", err, err)
			}
			if hint := hints(t, err, "n1", d1.port, s.user); !strings.Contains(hint, "ssh-add") {
				t.Errorf("hint %q", hint)
			}
			a := &asker{answer: func(n int) (string, error) {
				if n == 1 {
					return "wrong " + secret, nil
				}
				return secret, nil
			}}
			d = s.dialer()
			d.Ask = a.ask
			var all sync.WaitGroup
			for _, host := range []string{"n1", "n2", "n1", "n2"} {
				all.Go(func() {
					c, err := d.Dial(t.Context(), host)
					if err != nil {
						t.Error(err)
						return
					}
					c.Close()
				})
			}
			all.Wait()
			if n := a.asked.Load(); n != 2 {
				t.Errorf("asked %d times, want once and once more after a wrong answer", n)
			}
			_ = d2
		})
	}
}

func TestPassphraseNotGiven(t *testing.T) {
	s := newSite(t)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", secret))
	s.sshd("n1").known().named()
	for _, a := range []*asker{
		{answer: func(int) (string, error) { return "", errors.New("told: " + secret) }},
		{answer: func(int) (string, error) { return "not " + secret, nil }},
	} {
		d := s.dialer()
		d.Ask = a.ask
		for range 2 {
			_, err := d.Dial(t.Context(), "n1")
			var refused *AuthError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "passphrase") {
				t.Fatalf("%T: %v", err, err)
			}
			for _, text := range []string{err.Error(), refused.Hint(), fmt.Sprintf("%+v %#v", err, err), fmt.Sprintf("%+v %#v %v", d, d, &d.keys)} {
				if strings.Contains(text, secret) {
					t.Errorf("a secret is shown: %s", text)
				}
			}
		}
		if n := a.asked.Load(); n > maxAsks {
			t.Errorf("asked %d times", n)
		}
	}
}

// TestKeyIsNotAskedForInVain has a host that does not take the encrypted key.
func TestKeyIsNotAskedForInVain(t *testing.T) {
	s := newSite(t)
	s.newKey(".ssh/id_ecdsa", "ecdsa", secret)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
	s.sshd("n1").known().named()
	d := s.dialer()
	d.Ask = func(string) (string, error) { t.Error("asked"); return secret, nil }
	dial(t, d, "n1")
}

func TestUserCertificate(t *testing.T) {
	s := newSite(t)
	ca := s.newKey("ca", "ed25519", "")
	id := s.newKey(".ssh/id_rsa", "rsa", "")
	s.tool("ssh-keygen", "-q", "-s", ca, "-I", "user", "-n", s.user, id+".pub")
	s.write(".ssh/authorized_keys", "")
	s.sshd("n1", "TrustedUserCAKeys "+ca+".pub").known().named()
	dial(t, s.dialer(), "n1")

	elsewhere := s.path("elsewhere.pub")
	if err := os.Rename(id+"-cert.pub", elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dialer().Dial(t.Context(), "n1"); err == nil {
		t.Error("let in without its certificate")
	}
	s.add(".ssh/config", "CertificateFile "+elsewhere+"\n")
	dial(t, s.dialer(), "n1")
}

// agentProcess starts a real ssh-agent and returns its socket.
func agentProcess(s *site) string {
	s.t.Helper()
	socket := s.path("agent.sock")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return socket
		}
		time.Sleep(time.Millisecond)
	}
}

func addToAgent(s *site, socket, key string) {
	s.t.Helper()
	cmd := exec.Command("ssh-add", "-q", key)
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("ssh-add: %v: %s", err, out)
	}
}

func TestAgent(t *testing.T) {
	s := newSite(t)
	socket := agentProcess(s)
	for _, kind := range []string{"ed25519", "rsa"} {
		key := s.newKey("k_"+kind, kind, "")
		addToAgent(s, socket, key)
		s.authorize(key)
		if err := os.Remove(key); err != nil { // the agent alone has it
			t.Fatal(err)
		}
	}
	d := s.sshd("n1", "MaxAuthTries 2").known().named()
	for i := range 3 { // keys that the host does not take, before the right ones
		addToAgent(s, socket, s.newKey(fmt.Sprintf("x%d", i), "ed25519", ""))
	}
	dialer := s.dialer()
	dialer.Config.AgentSocket = socket
	dial(t, dialer, "n1")

	for _, kind := range []string{"ed25519", "rsa"} {
		// A public key as IdentityFile means: that one of the agent's, first.
		s.write(".ssh/config", "IdentitiesOnly yes\nIdentityFile "+s.path("k_"+kind)+".pub\n")
		d.named()
		dial(t, dialer, "n1")
	}
	s.write(".ssh/config", "IdentitiesOnly yes\nIdentityFile "+s.newKey("other", "ed25519", "")+"\n")
	d.named()
	if _, err := dialer.Dial(t.Context(), "n1"); err == nil {
		t.Error("IdentitiesOnly lets the agent's other keys in")
	}
	s.write(".ssh/config", "IdentityAgent none\n")
	d.named()
	if _, err := dialer.Dial(t.Context(), "n1"); err == nil {
		t.Error("IdentityAgent none asks the agent")
	}
	s.write(".ssh/config", "IdentityAgent "+s.path("gone.sock")+"\n")
	d.named()
	if _, err := dialer.Dial(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "ssh-agent at "+s.path("gone.sock")) {
		t.Errorf("an agent that is not there: %v", err)
	}
}

// TestSilentAgent bounds an agent that never answers.
func TestSilentAgent(t *testing.T) {
	s, d := oneHost(t)
	l, err := net.Listen("unix", s.path("agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.write(".ssh/config", "ConnectTimeout 1\n")
	d.named()
	dialer := s.dialer()
	dialer.Config.AgentSocket = s.path("agent.sock")
	_, err = dialer.Dial(t.Context(), "n1")
	var failed *DialError
	if !errors.As(err, &failed) || failed.Reason != DialTimeout {
		t.Errorf("%T: %v", err, err)
	}
}

func TestProxyJump(t *testing.T) {
	s := newSite(t)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
	outer, gate := s.sshd("outer").known().named(), s.sshd("gate").known().named("ProxyJump outer")
	var names []string
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		s.sshd(name).known().named("ProxyJump gate")
		names = append(names, name)
	}
	d := s.dialer()
	d.Limit = 1
	var all sync.WaitGroup
	clients := make([]*Client, len(names))
	for i, name := range names {
		all.Go(func() {
			c, err := d.Dial(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = c
			if got := output(t, c, "echo "+name); got != name+"\n" {
				t.Errorf("%s says %q", name, got)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, jump := range []*sshd{outer, gate} {
		if n := strings.Count(jump.log.String(), "Accepted publickey"); n != 1 {
			t.Errorf("%d logins on %s, which all share", n, jump.name)
		}
	}
	for _, c := range clients {
		c.Close()
	}
	if len(d.jumps) != 0 {
		t.Errorf("%d jumps are left", len(d.jumps))
	}
	again := dial(t, d, "n0")
	again.Close()
}

func TestProxyJumpErrors(t *testing.T) {
	s := newSite(t)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
	gate := s.sshd("gate").named()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := closed.Addr().(*net.TCPAddr).Port
	closed.Close()
	s.add(".ssh/config", fmt.Sprintf("Host n1\n HostName 127.0.0.1\n Port %d\n ProxyJump gate\n", port))
	s.add(".ssh/config", "Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
	d := s.dialer()
	_, err = d.Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Name != "gate" {
		t.Errorf("an unknown jump host: %T: %v", err, err)
	}
	gate.known()
	_, err = d.Dial(t.Context(), "n1")
	var failed *DialError
	if !errors.As(err, &failed) || failed.Reason != DialRefused || !strings.Contains(err.Error(), "through gate") {
		t.Errorf("a refused port behind a jump host: %T: %v", err, err)
	}
	if _, err = d.Dial(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "comes back") {
		t.Errorf("a ring of jump hosts: %v", err)
	}
	if len(d.jumps) != 0 {
		t.Errorf("%d jumps are left", len(d.jumps))
	}
}

func TestManyAtOnce(t *testing.T) {
	s, _ := oneHost(t)
	d := s.dialer()
	d.Limit = 4
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			c, err := d.Dial(t.Context(), "n1")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if got := output(t, c, fmt.Sprint("echo ", i)); got != fmt.Sprintln(i) {
				t.Errorf("%d says %q", i, got)
			}
		})
	}
	all.Wait()
	if cap(d.slots) != 4 || len(d.slots) != 0 {
		t.Errorf("%d of %d places taken", len(d.slots), cap(d.slots))
	}
}

func TestLimitEndsWithContext(t *testing.T) {
	s := newSite(t)
	entered := make(chan struct{})
	port := serve(t, func(c net.Conn) { close(entered); io.Copy(io.Discard, c) })
	d := s.dialer()
	d.Limit = 1
	ctx, cancel := context.WithCancel(t.Context())
	var first sync.WaitGroup
	first.Go(func() { d.Dial(ctx, fmt.Sprintf("127.0.0.1:%d", port)) })
	<-entered
	short, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	if _, err := d.Dial(short, "127.0.0.1:1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	cancel()
	first.Wait()
}

var _ xssh.Signer = (*lazySigner)(nil)
