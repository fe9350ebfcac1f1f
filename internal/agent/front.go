package agent

import (
	"encoding/json"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/peer"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/shim"
)

// front is where the processes that Open MPI starts in gangrun's name, shims
// and rsh agents, reach their agent: a unix socket in the abstract name space.
// Only processes below this one, of the same user, are heard.
type front struct {
	listener *net.UnixListener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[*net.UnixConn]bool
	ended bool
}

func newFront(hear func(conn *net.UnixConn, pid int, hello shim.Greeting, words *json.Decoder)) (*front, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"}) // the kernel finds a name
	if err != nil {
		return nil, err
	}
	f := &front{listener: l, conns: map[*net.UnixConn]bool{}}
	f.wg.Go(func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return // closed
			}
			pid, ok := peer.ProcessOf(conn)
			if !ok || !process.IsDescendant(pid) {
				_ = conn.Close()
				continue
			}
			f.mu.Lock()
			ended := f.ended
			f.conns[conn] = true
			f.mu.Unlock()
			if ended {
				_ = conn.Close()
				return
			}
			f.wg.Go(func() {
				defer func() {
					_ = conn.Close()
					f.mu.Lock()
					delete(f.conns, conn)
					f.mu.Unlock()
				}()
				words := json.NewDecoder(conn)
				var hello shim.Greeting
				if words.Decode(&hello) == nil {
					hear(conn, pid, hello, words)
				}
			})
		}
	})
	return f, nil
}

// env is the variable by which it is found.
func (f *front) env() string { return shim.Variable + "=" + f.listener.Addr().String() }

func (f *front) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	f.ended = true
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

// sendFiles sends files over a unix socket, with one byte that carries them.
func sendFiles(conn *net.UnixConn, files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	_, _, err := conn.WriteMsgUnix([]byte{'\n'}, unix.UnixRights(fds...), nil)
	return err
}
