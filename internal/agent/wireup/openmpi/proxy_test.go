package openmpi

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// pmixServer answers each connection with a welcome, waits for data, and closes the connection. It returns its
// address.
func pmixServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(make([]byte, 8))
			_, _ = conn.Read(make([]byte, 64))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// redirected returns a proxy in front of the server of rank 3, the address of the proxy, and a channel that gets a
// value for each loss that the proxy reports.
func redirected(t *testing.T) (*proxy, string, chan struct{}) {
	t.Helper()
	lost := make(chan struct{}, 8)
	x := newProxy(func(int, string) {}, func() { lost <- struct{}{} })
	t.Cleanup(x.close)
	server := pmixServer(t)
	env, err := x.redirect(3, []string{"PMIX_SERVER_URI41=a.0;tcp4://" + server + ";more", "PMIX_SERVER_URI2=a.0;tcp4://" + server, "PMIX_SERVER_TMPDIR=/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(env[1], ";tcp4://")
	if want := []string{"PMIX_SERVER_URI41=a.0;tcp4://" + address + ";more", "PMIX_SERVER_URI2=a.0;tcp4://" + address}; address == server || !slices.Equal(env, want) {
		t.Fatalf("variables %q, want %q", env, want)
	}
	return x, address, lost
}

// TestProxyOfAnotherProcess checks that the proxy closes the connection of a process that does not descend from this
// process, and does not use its data.
func TestProxyOfAnotherProcess(t *testing.T) {
	x, address, lost := redirected(t)
	conn, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	if data, err := io.ReadAll(conn); len(data) > 0 {
		t.Errorf("another process was told %q, %v", data, err)
	}
	if _, in, seen := x.state(3); in || !seen {
		t.Errorf("the rank is in: %t, can be seen: %t, want it silent", in, seen)
	}
	if len(lost) > 0 {
		t.Error("the server counts as lost")
	}
}

// TestProxyServerGone checks that the proxy reports a loss if the server closes the connection of a rank.
func TestProxyServerGone(t *testing.T) {
	x, address, lost := redirected(t)
	host, port, _ := net.SplitHostPort(address)
	child := exec.Command("bash", "-c", fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s && printf 'something' >&3 && cat <&3 >/dev/null`, host, port))
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	select {
	case <-lost: // the proxy may report the loss before the rank sees it
	default:
		t.Error("the server does not count as lost")
	}
	if _, in, _ := x.state(3); !in {
		t.Error("the rank was never in")
	}
}
