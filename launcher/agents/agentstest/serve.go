// Package agentstest connects tests to agents that run in the process of the test.
package agentstest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/gangrun/gangrun/internal/wire"
)

// Serve runs an agent on one end of a connection and returns the other end. The function cut breaks
// the connection. The function end stops the agent, and returns when the agent has ended.
func Serve(agent wire.AgentServer) (conn net.Conn, cut func(), end func(context.Context) error) {
	here, there := net.Pipe()
	server := grpc.NewServer()
	wire.RegisterAgentServer(server, agent)
	l := &once{conns: make(chan net.Conn, 1)}
	l.conns <- there
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	return here, func() { _ = there.Close() }, func(context.Context) error {
		server.Stop()
		<-served
		return nil
	}
}

// once is a listener with one connection.
type once struct {
	conns chan net.Conn
	close sync.Once
}

func (o *once) Accept() (net.Conn, error) {
	if c, ok := <-o.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (o *once) Close() error { o.close.Do(func() { close(o.conns) }); return nil }
func (*once) Addr() net.Addr { return &net.UnixAddr{} }

// Soon calls f, and returns what f returns. The test fails if f does not return within half a minute. So the test
// also fails if f waits for a silent agent, because such a wait takes much longer.
func Soon(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for a host that is silent")
		return nil
	}
}

// Processes returns the PIDs of those processes of gangrun whose program is below dir. The keys say what the
// processes are: agent, watchdog (for the inner watchdog), outer watchdog, bridge or step. Processes also
// returns the processes of a script that is called kubectl and is in dir.
func Processes(dir string) map[string][]int {
	found := map[string][]int{}
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		data, _ := os.ReadFile(filepath.Join(filepath.Dir(exe), "cmdline"))
		args := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		to, err := os.Readlink(exe)
		kind := ""
		switch {
		case args[0] == filepath.Join(dir, "kubectl"):
			kind = "kubectl"
		case err != nil || !strings.HasPrefix(to, dir+"/"):
			continue
		case len(args) == 4 && args[1] == "agent" && args[3] == "worker":
			kind = "agent"
		case len(args) == 4 && args[1] == "agent" && args[3] == "watchdog":
			kind = "watchdog"
		case len(args) == 3 && args[1] == "agent":
			kind = "outer watchdog"
		case len(args) > 1 && (args[1] == "bridge" || args[1] == "step"):
			kind = args[1]
		default:
			continue // the process has not executed its program yet, or has already ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
		found[kind] = append(found[kind], pid)
	}
	return found
}
