package meet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testport"
	"github.com/gangrun/gangrun/internal/wire"
)

var secret = []byte("the secret of this meeting")

// opened starts the answerer of a host. It returns the Peer that other hosts use to reach it.
func opened(t *testing.T, host string, as []byte) *wire.Peer {
	t.Helper()
	d, err := answer("127.0.0.1", proof(as, ""), proof(as, host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return &wire.Peer{Host: host, Address: "127.0.0.1", Port: int32(d.port())}
}

// listening returns a port. talk is called for each connection to that port.
func listening(t *testing.T, talk func(net.Conn)) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			talk(conn)
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func TestReach(t *testing.T) {
	other := opened(t, "h9", secret)
	other.Host = "h4"
	foreign := opened(t, "h5", []byte("that of another meeting"))
	peers := []*wire.Peer{
		opened(t, "h2", secret),
		{Host: "h3", Address: "127.0.0.1", Port: int32(testport.Refusing(t))},
		other,
		foreign,
		{Host: "h6", Address: "127.0.0.1", Error: "too many open files"},
		{Host: "h7", Address: "127.0.0.1", Port: listening(t, func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-x\r\n")) })},
	}
	want := []string{"", "connection refused", "another host answers", "another host answers", "it could not open a port: too many open files", "another host answers|connection reset"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	facts := reachAll(ctx, secret, peers)
	if len(facts) != len(peers) {
		t.Fatalf("got %d facts of %d peers", len(facts), len(peers))
	}
	for i, f := range facts {
		said := slices.ContainsFunc(strings.Split(want[i], "|"), func(w string) bool { return strings.Contains(f.Error, w) })
		if f.To != peers[i].Host || f.Address != "127.0.0.1" || !said || (f.Error == "") != (f.Time > 0) || (want[i] == "") != (f.Error == "") {
			t.Errorf("got %+v, want %q", f, want[i])
		}
	}
}

// TestReachMany lets many hosts connect to many others at the same time. No connection may be refused.
func TestReachMany(t *testing.T) {
	var peers []*wire.Peer
	for i := range 2 * reachAtOnce {
		peers = append(peers, opened(t, strings.Repeat("h", i+1), secret))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, f := range reachAll(t.Context(), secret, peers) {
				if f.Error != "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
	wg.Wait()
}

// TestReachSilence checks that a peer that does not answer is given up at the end of the time. A peer that was not
// tried until then has no fact.
func TestReachSilence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	silent, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer silent.Close()
	wg.Go(func() {
		tried := map[string]bool{} // the first peer may be tried again before the last one
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
			if tried[host] = true; len(tried) == reachAtOnce {
				cancel()
			}
		}
	})
	var peers []*wire.Peer
	for i := range reachAtOnce + 3 {
		peers = append(peers, &wire.Peer{Host: "h2", Address: fmt.Sprintf("127.0.0.%d", i+1), Port: int32(silent.Addr().(*net.TCPAddr).Port)})
	}
	facts := reachAll(ctx, secret, peers)
	if len(facts) != reachAtOnce {
		t.Errorf("%d of %d were tried, want %d", len(facts), len(peers), reachAtOnce)
	}
	for _, f := range facts {
		if !strings.Contains(f.Error, "within 5s") {
			t.Errorf("got %+v", f)
		}
	}
}

// TestReachAgain checks that a peer that does not answer is tried again.
func TestReachAgain(t *testing.T) {
	first := make(chan struct{})
	var calls sync.WaitGroup
	defer calls.Wait()
	defer close(first)
	var n atomic.Int32
	port := listening(t, func(c net.Conn) {
		if n.Add(1) == 1 { // as if packets were lost
			held, err := c.(*net.TCPConn).File()
			if err != nil {
				t.Error(err)
			}
			calls.Go(func() { <-first; held.Close() })
			return
		}
		if _, err := io.ReadFull(c, make([]byte, len(proof(secret, "")))); err == nil {
			_, _ = c.Write(proof(secret, "h2"))
		}
	})
	facts := reachAll(t.Context(), secret, []*wire.Peer{{Host: "h2", Address: "127.0.0.1", Port: port}})
	if len(facts) != 1 || facts[0].Error != "" || facts[0].Time <= 0 || n.Load() < 2 {
		t.Errorf("after %d tries: %+v", n.Load(), facts)
	}
}

// TestAnswerer checks that only peers that know the question get an answer. Close ends all other connections.
func TestAnswerer(t *testing.T) {
	d, err := answer("192.0.2.1", proof(secret, ""), proof(secret, "h1")) // this host does not have this address
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		conn, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: d.port()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	conn := dial()
	_, _ = conn.Write(proof(secret, "h1")) // the answer must not work as the question
	if data, err := io.ReadAll(conn); len(data) > 0 {
		t.Errorf("who does not know the question was answered %q, %v", data, err)
	}
	idle := dial()
	d.close()
	if data, err := io.ReadAll(idle); len(data) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %q, %v", data, err)
	}
}

func TestShareMark(t *testing.T) {
	m := shareMark{dir: t.TempDir(), secret: secret}
	peers := []*wire.Peer{{Host: "h2", Wrote: true}, {Host: "h3", Wrote: true}, {Host: "h4"}}
	for _, host := range []string{"h1", "h2"} {
		if err := m.write(host); err != nil {
			t.Fatal(err)
		}
	}
	path, _ := m.path("h3")
	agenttest.WriteFile(t, path, "of another meeting", 0o644)
	ctx, cancel := context.WithTimeout(t.Context(), 3*shareEvery)
	defer cancel()
	if f := m.look(ctx, "h1", peers); !slices.Equal(f.Sees, []string{"h1", "h2"}) || ctx.Err() == nil {
		t.Errorf("got %+v, %v", f, ctx.Err())
	}
	// The file appears while look waits.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	seen := make(chan *job.SharedFact)
	go func() { seen <- m.look(t.Context(), "h1", peers) }()
	if err := m.write("h3"); err != nil {
		t.Fatal(err)
	}
	if f := <-seen; !slices.Equal(f.Sees, []string{"h1", "h2", "h3"}) {
		t.Errorf("got %+v", f)
	}
	for _, host := range []string{"h1", "h2", "h3"} {
		m.remove(host)
	}
	if left, err := filepath.Glob(m.dir + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if err := (shareMark{dir: m.dir + "/absent", secret: secret}).write("h1"); err == nil {
		t.Error("it was written where there is no directory")
	}
}
