// Package sshtest starts real sshds for tests, on the loopback interface. It makes the keys and
// settings of a user who may log in to them.
package sshtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Longest is how long a test waits for something that must happen. After that time, the test fails.
const Longest = 2 * time.Minute

// Site is the home directory of a user, with keys and settings, and with the sshds to which the user may log
// in. Each test has its own Site.
type Site struct {
	Dir  string
	User string

	t testing.TB
}

// New makes a site without keys and sshds.
func New(t testing.TB) *Site {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{t: t, Dir: t.TempDir(), User: u.Username}
	if err := os.Mkdir(s.Path(".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// For returns the same site for a subtest. Servers that the subtest starts end with the subtest.
func (s *Site) For(t testing.TB) *Site {
	sub := *s
	sub.t = t
	return &sub
}

// Path returns the path of a file of the site.
func (s *Site) Path(name string) string { return filepath.Join(s.Dir, name) }

// Write writes a file and returns its path.
func (s *Site) Write(name, text string) string {
	s.t.Helper()
	path := s.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Has reports whether there is a file at a path.
func (s *Site) Has(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Add adds text at the end of a file.
func (s *Site) Add(name, text string) {
	s.t.Helper()
	old, err := os.ReadFile(s.Path(name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	s.Write(name, string(old)+text)
}

// Read returns the text of a file.
func (s *Site) Read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.Path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// Tool runs a program and returns what it prints.
func (s *Site) Tool(name string, args ...string) string {
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

// NewKey makes a key pair and returns the path of the private key. options has further arguments
// for ssh-keygen.
func (s *Site) NewKey(name, kind, passphrase string, options ...string) string {
	s.t.Helper()
	if passphrase != "" {
		options = append(options, "-a", "1") // makes it quick to decrypt the key
	}
	if kind == "rsa" {
		options = append(options, "-b", "2048") // quick to make
	}
	args := append([]string{"-q", "-t", kind, "-N", passphrase, "-C", name, "-f", s.Path(name)}, options...)
	if err := os.MkdirAll(filepath.Dir(s.Path(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.Tool("ssh-keygen", args...)
	return s.Path(name)
}

// Server is an sshd on a port of the loopback interface.
type Server struct {
	Name    string
	Port    int
	HostKey string // path of the private key

	site *Site
	cmd  *exec.Cmd
	log  Log
}

// Said returns the log of the sshd.
func (d *Server) Said() string { return d.log.String() }

// PID returns the process ID of the sshd.
func (d *Server) PID() int { return d.cmd.Process.Pid }

// Log is a buffer that several goroutines may use at once.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds p.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what has been written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// withHome returns lines of an sshd_config. It adds a home directory for sessions, unless one of the lines sets HOME. A
// shell that starts in the user's own home would read the user's files. That may take any time, and may leave locks
// behind when a test ends the shell.
func (s *Site) withHome(name string, lines []string) []string {
	home := s.Path(name + "/userhome")
	if err := os.MkdirAll(home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	lines = slices.Clone(lines)
	for i, line := range lines {
		if strings.HasPrefix(line, "SetEnv ") { // only the first such line counts
			if !strings.Contains(line, " HOME=") {
				lines[i] += " HOME=" + home
			}
			return lines
		}
	}
	return append(lines, "SetEnv HOME="+home)
}

// Start starts an sshd that accepts the keys in .ssh/authorized_keys. settings has further lines
// for its sshd_config.
func (s *Site) Start(name string, settings ...string) *Server {
	s.t.Helper()
	return s.StartIn(name, "", settings...)
}

// StartIn is like Start, but the sshd has a mount namespace of its own. Before the sshd starts, a
// shell executes the commands in setup in that namespace.
func (s *Site) StartIn(name, setup string, settings ...string) *Server {
	s.t.Helper()
	d := &Server{site: s, Name: name}
	if d.HostKey = s.Path(name + "/host_ed25519"); !s.Has(d.HostKey) { // a test may have made and signed it
		s.NewKey(name+"/host_ed25519", "ed25519", "")
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
		d.Port = free.Addr().(*net.TCPAddr).Port
		free.Close()
		lines := append(s.withHome(name, settings), // the first of two values for a keyword counts
			"ListenAddress 127.0.0.1",
			"Port "+strconv.Itoa(d.Port),
			"HostKey "+d.HostKey,
			"AuthorizedKeysFile "+s.Path(".ssh/authorized_keys"),
			"PidFile none", "UsePAM no", "StrictModes no", "PermitRootLogin yes", "PasswordAuthentication no",
			"KbdInteractiveAuthentication no", "MaxStartups 100", "LogLevel VERBOSE", "PrintMotd no")
		config := s.Write(name+"/sshd_config", strings.Join(lines, "\n")+"\n")
		d.cmd = exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
		if setup != "" {
			d.cmd = exec.Command("unshare", "--mount", "--propagation", "private",
				"/bin/sh", "-ec", setup+`; exec "$@"`, "sh", "/usr/sbin/sshd", "-D", "-e", "-f", config)
		}
		d.cmd.Stderr = &d.log
		d.cmd.WaitDelay = time.Second // the process of a connection may outlive sshd and hold its output open
		if err := d.cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { d.cmd.Wait(); close(ended) }()
		if d.serves(ended) {
			s.t.Cleanup(func() {
				sessions := descendants(d.cmd.Process.Pid)
				d.cmd.Process.Kill()
				<-ended
				endAll(sessions)
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

// descendants returns the descendants of a process.
func descendants(pid int) (all []int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for _, field := range strings.Fields(string(data)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(append(all, child), descendants(child)...)
		}
	}
	return all
}

// endAll kills the processes of sessions and the processes that they start meanwhile, and waits for their end. A shell
// whose connection has ended may go on, and would make files in a directory that the test removes.
func endAll(pids []int) {
	for deadline := time.Now().Add(Longest); len(pids) > 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var left []int
		for _, pid := range pids {
			left = append(left, descendants(pid)...)
			_ = syscall.Kill(pid, syscall.SIGKILL)
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
				if _, rest, ok := strings.Cut(string(stat), ") "); ok && rest[0] != 'Z' {
					left = append(left, pid)
				}
			}
		}
		pids = left
	}
}

// serves waits until sshd listens. It returns false if sshd ends before that.
func (d *Server) serves(ended <-chan struct{}) bool {
	d.site.t.Helper()
	for limit := time.After(Longest); !strings.Contains(d.log.String(), fmt.Sprintf("Server listening on 127.0.0.1 port %d", d.Port)); {
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

// Address returns the address of the sshd, as HOST:PORT.
func (d *Server) Address() string { return "127.0.0.1:" + strconv.Itoa(d.Port) }

// Public returns the public host key, as "TYPE BASE64".
func (d *Server) Public() string {
	return PublicKey(d.site.t, d.HostKey)
}

// PublicKey returns the public key that belongs to a file with a private key, as "TYPE BASE64".
func PublicKey(t testing.TB, private string) string {
	t.Helper()
	data, err := os.ReadFile(private + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(data))
	return f[0] + " " + f[1]
}

// Known adds the server's host key to the user's known_hosts.
func (d *Server) Known() *Server {
	d.site.Add(".ssh/known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s\n", d.Port, d.Public()))
	return d
}

// Named adds a Host entry for the server to the user's ssh_config. The entry is called Name. more has further
// lines for it.
func (d *Server) Named(more ...string) *Server {
	d.site.Add(".ssh/config", fmt.Sprintf("Host %s\n HostName 127.0.0.1\n Port %d\n %s\n", d.Name, d.Port, strings.Join(more, "\n ")))
	return d
}

// Authorize lets a key log in.
func (s *Site) Authorize(private string, options ...string) {
	s.Add(".ssh/authorized_keys", strings.Join(append(options, PublicKey(s.t, private)), " ")+"\n")
}

// OneHost makes a site with one sshd, which is the host n1. Its host key is in known_hosts, and
// the user can log in with a key without a passphrase.
func OneHost(t testing.TB, more ...string) (*Site, *Server) {
	t.Helper()
	s := New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	return s, s.Start("n1", more...).Known().Named()
}

// At returns a Server for an SSH server that the test itself runs.
func (s *Site) At(name string, port int, hostKey string) *Server {
	return &Server{site: s, Name: name, Port: port, HostKey: hostKey}
}
