package openmpi

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/peer"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/shim"
)

// server serves a process that Open MPI has started for gangrun: a shim or an rsh agent. words
// decodes the messages of the process after its greeting.
type server func(conn *net.UnixConn, pid int, hello shim.Greeting, words *json.Decoder)

// listener is a unix socket in the abstract name space. Shims and rsh agents connect to it to reach their agent. It
// accepts only descendants of this process that belong to the same user.
type listener struct {
	socket *net.UnixListener
	serve  server
	wg     sync.WaitGroup
	// closing is closed by close.
	closing chan struct{}

	mu    sync.Mutex
	conns map[*net.UnixConn]bool
	ended bool
}

func newListener(serve server) (*listener, error) {
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"}) // the kernel chooses a name
	if err != nil {
		return nil, err
	}
	l := &listener{socket: socket, serve: serve, closing: make(chan struct{}), conns: map[*net.UnixConn]bool{}}
	l.wg.Go(l.accept)
	return l, nil
}

func (l *listener) accept() {
	for {
		conn, err := l.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many files are open, and the shim waits
			select {
			case <-time.After(process.KillEvery):
				continue
			case <-l.closing:
				return
			}
		}
		pid, ok := peer.ProcessOf(conn)
		if !ok || !process.IsDescendant(pid) || !l.add(conn) {
			_ = conn.Close()
			continue
		}
		l.wg.Go(func() {
			defer l.remove(conn)
			words := json.NewDecoder(conn)
			var hello shim.Greeting
			if words.Decode(&hello) == nil {
				l.serve(conn, pid, hello, words)
			}
		})
	}
}

// add records a connection, so that close closes it. After close, add returns false.
func (l *listener) add(conn *net.UnixConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.conns[conn] = true
	}
	return !l.ended
}

func (l *listener) remove(conn *net.UnixConn) {
	_ = conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}

// env returns the variable that tells shims and rsh agents the name of the socket.
func (l *listener) env() string { return shim.Variable + "=" + l.socket.Addr().String() }

// close closes the socket and every connection, and waits for their servers.
func (l *listener) close() {
	close(l.closing)
	_ = l.socket.Close()
	l.mu.Lock()
	l.ended = true
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// sendFiles sends files over a unix socket. They are attached to one byte of data.
func sendFiles(conn *net.UnixConn, files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	_, _, err := conn.WriteMsgUnix([]byte{'\n'}, unix.UnixRights(fds...), nil)
	return err
}
