package ssh

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A site is a user's directory with keys and settings, and the sshds that
// serve it, all the test's own.
type site struct {
	t    testing.TB
	dir  string
	user string
}

func newSite(t testing.TB) *site {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: t.TempDir(), user: u.Username}
	if err := os.Mkdir(s.path(".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) string {
	s.t.Helper()
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *site) has(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *site) add(name, text string) {
	s.t.Helper()
	old, err := os.ReadFile(s.path(name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	s.write(name, string(old)+text)
}

func (s *site) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// tool runs one of OpenSSH's own programs.
func (s *site) tool(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s %q: %v: %s", name, args, err, &stderr)
	}
	return string(out)
}

// newKey makes a key pair and returns its private file.
func (s *site) newKey(name, kind, passphrase string, more ...string) string {
	s.t.Helper()
	if passphrase != "" {
		more = append(more, "-a", "1") // what it costs to guess is not the test's concern
	}
	if kind == "rsa" {
		more = append(more, "-b", "2048") // quick to make
	}
	args := append([]string{"-q", "-t", kind, "-N", passphrase, "-C", name, "-f", s.path(name)}, more...)
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.tool("ssh-keygen", args...)
	return s.path(name)
}

// config is for a user whose home is the site's directory.
func (s *site) config() Config {
	return Config{
		UserFile:   s.path(".ssh/config"),
		KnownHosts: []string{s.path(".ssh/known_hosts")},
		User:       s.user,
		UID:        os.Getuid(),
		Home:       s.dir,
		Hostname:   "controller.example.org",
		Getenv:     func(string) string { return "" },
	}
}

func (s *site) dialer() *Dialer { return &Dialer{Config: s.config()} }

// An sshd is a real one, on a port of the loopback interface.
type sshd struct {
	site    *site
	name    string
	port    int
	hostKey string // private file
	cmd     *exec.Cmd
	log     lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// sshd starts one. It lets in whom .ssh/authorized_keys names; more is further
// lines of its sshd_config.
func (s *site) sshd(name string, more ...string) *sshd {
	s.t.Helper()
	return s.sshdIn(name, "", more...)
}

// sshdIn starts one in a mount namespace of its own, after a shell has done
// setup there, which may mount what it likes.
func (s *site) sshdIn(name, setup string, more ...string) *sshd {
	s.t.Helper()
	d := &sshd{site: s, name: name}
	if d.hostKey = s.path(name + "/host_ed25519"); !s.has(d.hostKey) { // a test may have made it, to sign it
		s.newKey(name+"/host_ed25519", "ed25519", "")
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	for try := 0; ; try++ {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatal(err)
		}
		d.port = free.Addr().(*net.TCPAddr).Port
		free.Close()
		lines := append(more, // the first of two values counts
			"ListenAddress 127.0.0.1",
			"Port "+strconv.Itoa(d.port),
			"HostKey "+d.hostKey,
			"AuthorizedKeysFile "+s.path(".ssh/authorized_keys"),
			"PidFile none", "UsePAM no", "StrictModes no", "PermitRootLogin yes", "PasswordAuthentication no",
			"KbdInteractiveAuthentication no", "MaxStartups 100", "LogLevel VERBOSE", "PrintMotd no")
		config := s.write(name+"/sshd_config", strings.Join(lines, "\n")+"\n")
		d.cmd = exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
		if setup != "" {
			d.cmd = exec.Command("unshare", "--mount", "--propagation", "private",
				"/bin/sh", "-ec", setup+`; exec "$@"`, "sh", "/usr/sbin/sshd", "-D", "-e", "-f", config)
		}
		d.cmd.Stderr = &d.log
		d.cmd.WaitDelay = time.Second // a connection's own process may outlive it, and holds that
		if err := d.cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { d.cmd.Wait(); close(ended) }()
		if d.serves(ended) {
			s.t.Cleanup(func() {
				d.cmd.Process.Kill()
				<-ended
				if s.t.Failed() {
					s.t.Logf("sshd said:\n%s", d.log.String())
				}
			})
			return d
		}
		<-ended
		if try == 4 {
			s.t.Fatalf("sshd does not start: %s", d.log.String())
		}
	}
}

// serves waits for sshd to listen, or to have ended.
func (d *sshd) serves(ended <-chan struct{}) bool {
	d.site.t.Helper()
	for limit := time.After(longest); !strings.Contains(d.log.String(), fmt.Sprintf("Server listening on 127.0.0.1 port %d", d.port)); {
		select {
		case <-ended:
			return false
		case <-limit:
			_ = d.cmd.Process.Kill()
			d.site.t.Fatalf("sshd does not say that it listens, but: %s", d.log.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

func (d *sshd) address() string { return "127.0.0.1:" + strconv.Itoa(d.port) }

// public is a host key's public line, "TYPE BASE64".
func (d *sshd) public() string {
	return publicKey(d.site.t, d.hostKey)
}

func publicKey(t testing.TB, private string) string {
	t.Helper()
	data, err := os.ReadFile(private + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(data))
	return f[0] + " " + f[1]
}

// known makes the host known to the user.
func (d *sshd) known() *sshd {
	d.site.add(".ssh/known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s\n", d.port, d.public()))
	return d
}

// named gives the host a name in the user's ssh_config.
func (d *sshd) named(more ...string) *sshd {
	d.site.add(".ssh/config", fmt.Sprintf("Host %s\n HostName 127.0.0.1\n Port %d\n %s\n", d.name, d.port, strings.Join(more, "\n ")))
	return d
}

// authorize lets a key in.
func (s *site) authorize(private string, options ...string) {
	s.add(".ssh/authorized_keys", strings.Join(append(options, publicKey(s.t, private)), " ")+"\n")
}

// host is a site with one sshd that is named n1, known, and lets the user in
// with a plain key.
func oneHost(t testing.TB, more ...string) (*site, *sshd) {
	t.Helper()
	s := newSite(t)
	s.authorize(s.newKey(".ssh/id_ed25519", "ed25519", ""))
	return s, s.sshd("n1", more...).known().named()
}

// done waits until a connection has ended.
func done(t testing.TB, c *Client) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(longest):
		t.Fatalf("the connection does not end within %s", longest)
	}
}

func dial(t testing.TB, d *Dialer, host string) *Client {
	t.Helper()
	c, err := d.Dial(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// output runs a command and returns what it printed.
func output(t testing.TB, c *Client, command string) string {
	t.Helper()
	s, err := c.Exec(context.Background(), command)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Stdin.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(s.Stdout); err != nil {
		t.Fatal(err)
	}
	if code, err := s.Wait(); code != 0 || err != nil {
		t.Fatalf("%q: code %d, %v, stderr %q", command, code, err, s.Stderr())
	}
	return b.String()
}
