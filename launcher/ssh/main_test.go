package ssh

import (
	"flag"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/remote/sshclient"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
	"github.com/gangrun/gangrun/internal/selfcheck"
)

// TestMain runs the tests, or acts as the program that the tests install on a host.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "self-check" {
		os.Exit(selfcheck.Main(os.Args[2:]))
	}
	flag.Parse()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { removeBuilds(); os.Exit(code) }))
}

// config returns the SSH configuration of the user of a site.
func config(s *sshtest.Site) sshconfig.Config {
	return sshconfig.Config{
		UserFile:   s.Path(".ssh/config"),
		KnownHosts: []string{s.Path(".ssh/known_hosts")},
		User:       s.User,
		UID:        os.Getuid(),
		Home:       s.Dir,
		Hostname:   "controller.example.org",
		Getenv:     func(string) string { return "" },
	}
}

// client returns a Client for the hosts of a site.
func client(s *sshtest.Site) Client {
	return Client{Dialer: &sshclient.Dialer{Config: config(s), Limit: 16}, Target: func(host string) string { return host }}
}

func dial(t testing.TB, d Dialer, host string) *Conn {
	t.Helper()
	c, err := d.Dial(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// done waits until a connection has ended.
func done(t testing.TB, c *Conn) {
	t.Helper()
	select {
	case <-c.Runner.(connection).Done():
	case <-time.After(sshtest.Longest):
		t.Fatalf("the connection does not end within %s", sshtest.Longest)
	}
}

// output runs a command and returns its output.
func output(t testing.TB, c *Conn, command string) string {
	t.Helper()
	p, err := c.Run(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Stdin.Close()
	text, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); code != 0 || err != nil {
		t.Fatalf("%q: code %d, %v, stderr %q", command, code, err, p.Stderr())
	}
	return string(text)
}
