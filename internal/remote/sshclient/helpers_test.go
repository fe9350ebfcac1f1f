package sshclient

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func dialer(s *sshtest.Site) *Dialer { return &Dialer{Config: config(s)} }

func dial(t testing.TB, d *Dialer, host string) *Client {
	t.Helper()
	c, err := d.Dial(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// done waits until a connection has ended.
func done(t testing.TB, c *Client) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(sshtest.Longest):
		t.Fatalf("the connection does not end within %s", sshtest.Longest)
	}
}

// output runs a command and returns its output.
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
