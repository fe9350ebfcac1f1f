package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
	"github.com/gangrun/gangrun/internal/testport"
)

func TestDial(t *testing.T) {
	s, d := sshtest.OneHost(t)
	c := dial(t, dialer(s), "n1")
	if got := output(t, c, "echo hello"); got != "hello\n" {
		t.Errorf("echo says %q", got)
	}
	if got := c.Peer(); got.Name != "n1" || got.Addr != d.Address() || got.User != s.User {
		t.Errorf("peer %+v", got)
	}
	if err := c.Close(); err != nil || c.Err() != nil {
		t.Errorf("close: %v, %v", err, c.Err())
	}
	done(t, c)
	if _, err := c.Exec(t.Context(), "true"); err == nil {
		t.Error("a closed client runs commands")
	}
}

// hints checks that the text of an error has the host's name, port and user. It returns the hint of the error.
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

func TestDialErrors(t *testing.T) {
	s := sshtest.New(t)
	refused := testport.Refusing(t)
	silent := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	closes := serve(t, func(net.Conn) {})
	web := serve(t, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	s.Write(".ssh/config", "Host silent\nHostName 127.0.0.1\nConnectTimeout 1\n")
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
			_, err := dialer(s).Dial(t.Context(), fmt.Sprintf("bob@%s:%d", test.host, test.port))
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
		_, err := dialer(s).Dial(ctx, fmt.Sprintf("127.0.0.1:%d", port))
		var failed *DialError
		if !errors.As(err, &failed) || failed.Reason != DialCancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%T: %v", err, err)
		}
	})
}

// serve calls handle for each connection until the test ends. It returns its port.
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

func TestManyAtOnce(t *testing.T) {
	s, _ := sshtest.OneHost(t)
	d := dialer(s)
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
	s := sshtest.New(t)
	entered := make(chan struct{})
	port := serve(t, func(c net.Conn) { close(entered); io.Copy(io.Discard, c) })
	d := dialer(s)
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
