package agent

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// front is where the processes that Open MPI starts in gangrun's name, shims
// and rsh agents, reach their agent: a unix socket in the abstract name space.
// Only processes below this one, of the same user, are heard.
type front struct {
	listener *net.UnixListener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[*net.UnixConn]int // and their processes
}

// frontVar names the socket in the environment.
const frontVar = "GANGRUN_AGENT"

// greeting is the first word of a shim or rsh agent.
type greeting struct {
	Shim bool     `json:"shim,omitempty"`
	Rank int      `json:"rank,omitempty"`
	PMIx []string `json:"pmix,omitempty"` // variables that tell of its server
	// Node and Command are those of a daemon that mpirun wants started.
	Node    string `json:"node,omitempty"`
	Command []byte `json:"command,omitempty"`
}

// order tells a shim what to start. Three descriptors come with it.
type order struct {
	Path    []byte   `json:"path"`
	Argv    [][]byte `json:"argv"`
	Env     [][]byte `json:"env"` // over its own
	Workdir []byte   `json:"workdir"`
}

// word is what a shim says of its rank: a PID first, a status last.
type word struct {
	PID    int    `json:"pid,omitempty"`
	Error  string `json:"error,omitempty"` // why it could not be started
	Errno  int    `json:"errno,omitempty"`
	Told   bool   `json:"told,omitempty"` // Open MPI wants it to end
	Ended  bool   `json:"ended,omitempty"`
	Status uint32 `json:"status,omitempty"` // as wait(2) gives it
}

func newFront(hear func(conn *net.UnixConn, pid int, hello greeting, words *json.Decoder)) (*front, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"}) // the kernel finds a name
	if err != nil {
		return nil, err
	}
	f := &front{listener: l, conns: map[*net.UnixConn]int{}}
	f.wg.Go(func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return // closed
			}
			pid, ok := peerPID(conn)
			if !ok || !below(pid) {
				_ = conn.Close()
				continue
			}
			f.mu.Lock()
			f.conns[conn] = pid
			f.mu.Unlock()
			f.wg.Go(func() {
				defer func() {
					_ = conn.Close()
					f.mu.Lock()
					delete(f.conns, conn)
					f.mu.Unlock()
				}()
				words := json.NewDecoder(conn)
				var hello greeting
				if words.Decode(&hello) == nil {
					hear(conn, pid, hello, words)
				}
			})
		}
	})
	return f, nil
}

// env is the variable by which it is found.
func (f *front) env() string { return frontVar + "=" + f.listener.Addr().String() }

// peers are the processes that are connected.
func (f *front) peers() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pids []int
	for _, pid := range f.conns {
		pids = append(pids, pid)
	}
	return pids
}

func (f *front) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

// below reports whether a process descends from this one.
func below(pid int) bool {
	for range 64 {
		p, ok := readProcess(pid)
		if !ok || p.parent <= 1 {
			return false
		}
		if p.parent == os.Getpid() {
			return true
		}
		pid = p.parent
	}
	return false
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

// receiveFiles receives n files that sendFiles has sent, close-on-exec.
func receiveFiles(conn *net.UnixConn, n int) ([]int, error) {
	oob := make([]byte, unix.CmsgSpace(4*n))
	_, got, _, _, err := conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:got])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no descriptors came"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != n {
		return nil, errors.Join(errors.New("not all descriptors came"), err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return slices.Clip(fds), nil
}
