package stepserver

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/remote/sshclient"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "step" {
		os.Exit(Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "hello" {
		_, _ = io.WriteString(os.Stdout, "hello from itself\n")
		os.Exit(7)
	}
	goleak.VerifyTestMain(m)
}

// started is a server that runs in a process of its own.
type started struct {
	cmd    *exec.Cmd
	report Report
	key    ed25519.PrivateKey
	over   chan error
}

func start(t *testing.T, grace time.Duration) *started {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &started{cmd: exec.Command(os.Args[0], Args(public, grace, 0)...), key: private, over: make(chan error, 1)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(line, Mark)
	if s.report, err = ParseReport(rest); err != nil || !ok {
		t.Fatalf("%q: %v", line, err)
	}
	go func() { s.over <- s.cmd.Wait() }()
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

func (s *started) dial(t *testing.T, d *sshclient.Dialer, key ed25519.PrivateKey, hostKey []byte) (*sshclient.Client, error) {
	t.Helper()
	return d.DialServer(t.Context(), sshclient.Server{Name: "h1", Address: "127.0.0.1", Port: s.report.Port, User: "bob", HostKey: hostKey, Key: key})
}

func run1(t *testing.T, c *sshclient.Client, line, input string) (string, int) {
	t.Helper()
	s, err := c.Exec(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, _ = io.WriteString(s.Stdin, input) // the command may have ended
	_ = s.Stdin.Close()
	out, err := io.ReadAll(s.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	code, err := s.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + s.Stderr(), code
}

// TestServer lets the only client run commands. The server must end when the client asks for it and the orphans of the
// commands have ended.
func TestServer(t *testing.T) {
	s := start(t, time.Hour)
	d := &sshclient.Dialer{}
	c, err := s.dial(t, d, s.key, s.report.HostKey)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"cat; exit 3":                       "in",
		"echo out; echo err >&2":            "out\nerr\n",
		Self + "hello":                      "hello from itself\n",
		"kill -9 $$":                        "",
		"head -c 300000 </dev/zero | wc -c": "300000\n",
	} {
		codes := map[string]int{"cat; exit 3": 3, Self + "hello": 7, "kill -9 $$": 137}
		if got, code := run1(t, c, line, "in"); got != want || code != codes[line] {
			t.Errorf("%s: %q, %d; want %q, %d", line, got, code, want, codes[line])
		}
	}
	pid, _ := run1(t, c, "setsid sleep 600 >/dev/null 2>&1 & echo $!", "")
	if _, code := run1(t, c, End, ""); code != 0 {
		t.Errorf("end: %d", code)
	}
	select {
	case err := <-s.over:
		t.Fatalf("the server ended before its orphan: %v", err)
	case <-time.After(5 * lookEvery):
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	// The server may end before it has answered, so this is no command of the server.
	if err := unix.Kill(orphan, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = c.Close()
	select {
	case err := <-s.over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the server does not end")
	}
}

// TestOthers checks that a second client, and a client that expects another server, are refused.
func TestOthers(t *testing.T) {
	s := start(t, time.Hour)
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &sshclient.Dialer{}
	if c, err := s.dial(t, d, other, s.report.HostKey); err == nil {
		t.Error("another client is let in")
		_ = c.Close()
	}
	if c, err := s.dial(t, d, s.key, append([]byte{1}, s.report.HostKey...)); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("another server is trusted: %v", err)
		if c != nil {
			_ = c.Close()
		}
	}
}

// TestAlone checks that a server without a client ends after its grace. Signals of the batch system must not end it.
func TestAlone(t *testing.T) {
	s := start(t, 300*time.Millisecond)
	d := &sshclient.Dialer{}
	c, err := s.dial(t, d, s.key, s.report.HostKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if out, code := run1(t, c, "echo there", ""); out != "there\n" || code != 0 {
		t.Errorf("%q, %d", out, code)
	}
	_ = c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	select {
	case err := <-s.over:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("the server does not end")
	}
}

func FuzzReport(f *testing.F) {
	f.Add("h1 22 AAAA 10.0.0.1,10.0.0.2")
	f.Add("h1 70000 AAAA x")
	f.Fuzz(func(t *testing.T, line string) {
		r, err := ParseReport(line)
		if err != nil {
			return
		}
		if again, err := ParseReport(r.String()); err != nil || again.Port != r.Port || again.Node != r.Node {
			t.Errorf("%q became %+v, %v", line, again, err)
		}
	})
}
