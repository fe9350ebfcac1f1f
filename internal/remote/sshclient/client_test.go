package sshclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

func TestSession(t *testing.T) {
	s, _ := sshtest.OneHost(t)
	c := dial(t, dialer(s), "n1")
	for _, test := range []struct {
		command, out, stderr string
		code                 int
	}{
		{"cat; echo err >&2; exit 7", "in", "err\n", 7},
		{"kill -9 $$", "", "", 137},
		{"kill -TERM $$", "", "", 143},
		{"no-such-command-here", "", "not found", 127},
	} {
		session, err := c.Exec(t.Context(), test.command)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(session.Stdin, "in")
		session.Stdin.Close()
		out, err := io.ReadAll(session.Stdout)
		code, waitErr := session.Wait()
		if err != nil || waitErr != nil || code != test.code || string(out) != test.out || !strings.Contains(session.Stderr(), test.stderr) {
			t.Errorf("%q: code %d, out %q, stderr %q, %v, %v", test.command, code, out, session.Stderr(), err, waitErr)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStderrIsBounded(t *testing.T) {
	s, _ := sshtest.OneHost(t)
	c := dial(t, dialer(s), "n1")
	session, err := c.Exec(t.Context(), "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo end >&2")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, session.Stdout)
	if code, err := session.Wait(); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	if got := session.Stderr(); len(got) != stderrLimit+3 || !strings.HasSuffix(got, "xend\n") || !strings.HasPrefix(got, "...x") {
		t.Errorf("%d bytes are kept, %q at the end", len(got), got[len(got)-10:])
	}
}

func TestBulk(t *testing.T) {
	s, _ := sshtest.OneHost(t)
	c := dial(t, dialer(s), "n1")
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	sum := sha256.Sum256(data)
	session, err := c.Exec(t.Context(), "sha256sum")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Stdin.Write(data); err != nil {
		t.Fatal(err)
	}
	session.Stdin.Close()
	if out, err := io.ReadAll(session.Stdout); err != nil || !strings.HasPrefix(string(out), hex.EncodeToString(sum[:])) {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSeveralSessions(t *testing.T) {
	s, _ := sshtest.OneHost(t)
	c := dial(t, dialer(s), "n1")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if got := output(t, c, fmt.Sprint("echo ", i)); got != fmt.Sprintln(i) {
				t.Errorf("%d says %q", i, got)
			}
		})
	}
	all.Wait()
}

// TestSessionLimit tests a host that allows one session at a time.
func TestSessionLimit(t *testing.T) {
	s, d := sshtest.OneHost(t, "MaxSessions 1")
	c := dial(t, dialer(s), "n1")
	first, err := c.Exec(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(t.Context(), "true")
	var refused *SessionError
	if !errors.As(err, &refused) {
		t.Fatalf("%T: %v", err, err)
	}
	if hint := hints(t, err, "n1", d.Port, s.User); !strings.Contains(hint, "MaxSessions") {
		t.Errorf("hint %q", hint)
	}
	first.Stdin.Close()
	if code, err := first.Wait(); code != 0 || err != nil {
		t.Error(code, err)
	}
}

// TestCloseSession closes a session while its command still runs.
func TestCloseSession(t *testing.T) {
	s, _ := sshtest.OneHost(t)
	c := dial(t, dialer(s), "n1")
	session, err := c.Exec(t.Context(), "cat; exit 5")
	if err != nil {
		t.Fatal(err)
	}
	session.Close()
	session.Close()
	if code, err := session.Wait(); code == 0 && err == nil {
		t.Error("a closed session ended well")
	}
	if got := output(t, c, "echo on"); got != "on\n" {
		t.Errorf("after it: %q", got)
	}
}

func TestHostEnds(t *testing.T) {
	s, _ := sshtest.OneHost(t)
	c := dial(t, dialer(s), "n1")
	session, err := c.Exec(t.Context(), "kill -9 $PPID; cat") // kills the sshd of the session
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, session.Stdout)
	_, err = session.Wait()
	var lost *LostError
	if !errors.As(err, &lost) || lost.Silence != 0 {
		t.Errorf("%T: %v", err, err)
	}
	done(t, c)
	if !errors.As(c.Err(), &lost) || !strings.Contains(c.Err().Error(), `host "n1"`) {
		t.Errorf("%v", c.Err())
	}
	if _, err := c.Exec(t.Context(), "true"); !errors.As(err, &lost) {
		t.Errorf("%T: %v", err, err)
	}
}

// relay passes connections on to a host until it is cut. It then drops all data without closing the connections, as a
// broken network does.
type relay struct {
	port int
	cut  atomic.Bool
}

func newRelay(t *testing.T, to string) *relay {
	r := &relay{}
	var mu sync.Mutex
	var fars []net.Conn
	r.port = serve(t, func(near net.Conn) {
		far, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		mu.Lock()
		fars = append(fars, far)
		mu.Unlock()
		pass := func(dst, src net.Conn) { // copies until src ends; dst is then closed, unless the relay is cut
			buffer := make([]byte, 32<<10)
			for {
				n, err := src.Read(buffer)
				if !r.cut.Load() {
					dst.Write(buffer[:n])
				}
				if err != nil {
					break
				}
			}
			if !r.cut.Load() {
				dst.Close()
			}
		}
		var all sync.WaitGroup
		all.Go(func() { pass(far, near) })
		pass(near, far)
		all.Wait()
	})
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, far := range fars {
			far.Close()
		}
	})
	return r
}

// quiet is the silence after which a line counts as dead in these tests. It is longer than this machine may stand
// still.
const quiet = 8 * time.Second

func TestSilence(t *testing.T) {
	t.Parallel()
	s, host := sshtest.OneHost(t)
	r := newRelay(t, host.Address())
	s.Write(".ssh/config", fmt.Sprintf("Host n1\nHostName 127.0.0.1\nPort %d\nHostKeyAlias n1\n", r.port))
	s.Write(".ssh/known_hosts", "n1 "+host.Public()+"\n")
	d := dialer(s)
	d.KeepAlive, d.Silence = 50*time.Millisecond, quiet
	c := dial(t, d, "n1")
	session, err := c.Exec(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	// An idle connection must stay open for longer than the limit, because the keep-alive messages are answered.
	select {
	case <-c.Done():
		t.Fatalf("an idle connection ends: %v", c.Err())
	case <-time.After(d.Silence + time.Second):
	}
	r.cut.Store(true)
	io.Copy(io.Discard, session.Stdout)
	_, err = session.Wait()
	var lost *LostError
	if !errors.As(err, &lost) || lost.Silence < d.Silence {
		t.Errorf("%T: %v", err, err)
	}
	done(t, c)
	if !errors.As(c.Err(), &lost) {
		t.Errorf("%T: %v", c.Err(), c.Err())
	}
}

// TestExecOnSilentLine checks that the end of ctx ends Exec on a silent line, and that Close works after that.
func TestExecOnSilentLine(t *testing.T) {
	s, host := sshtest.OneHost(t)
	r := newRelay(t, host.Address())
	s.Write(".ssh/config", fmt.Sprintf("Host n1\nHostName 127.0.0.1\nPort %d\nHostKeyAlias n1\n", r.port))
	s.Write(".ssh/known_hosts", "n1 "+host.Public()+"\n")
	c := dial(t, dialer(s), "n1")
	r.cut.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(ctx, "true"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `host "n1"`) {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestLostJump checks a connection through a jump host when the connection to the jump host is lost.
func TestLostJump(t *testing.T) {
	t.Parallel()
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	gate := s.Start("gate").Known()
	r := newRelay(t, gate.Address())
	s.Write(".ssh/config", fmt.Sprintf("Host gate\nHostName 127.0.0.1\nPort %d\nHostKeyAlias gate\n", r.port))
	s.Add(".ssh/known_hosts", "gate "+gate.Public()+"\n")
	s.Start("n1").Known().Named("ProxyJump gate")
	d := dialer(s)
	d.KeepAlive, d.Silence = 50*time.Millisecond, quiet
	c := dial(t, d, "n1")
	if c.Peer().Via[0] != "gate" {
		t.Errorf("peer %+v", c.Peer())
	}
	r.cut.Store(true)
	done(t, c)
	var lost *LostError
	if !errors.As(c.Err(), &lost) {
		t.Errorf("%T: %v", c.Err(), c.Err())
	}
	r.cut.Store(false)
	dial(t, d, "n1") // over a new connection to the gate, while the dead connection is still open
	c.Close()
	jumps := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.jumps)
	}
	for deadline := time.Now().Add(sshtest.Longest); jumps() > 1; time.Sleep(20 * time.Millisecond) { // there is no jump left if c had the new connection
		if time.Now().After(deadline) {
			t.Fatalf("%d jumps, want the living one at most", jumps())
		}
	}
}
