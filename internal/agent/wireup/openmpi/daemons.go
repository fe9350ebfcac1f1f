package openmpi

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/shim"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// daemons are Open MPI's daemons on all hosts except mpirun's host. mpirun starts an rsh agent for each daemon. The
// controller makes the agent of the daemon's host start the daemon, and relays data between the daemon and its rsh
// agent.
type daemons struct {
	mu      sync.Mutex
	started map[int]bool          // daemons on this host, by the ID of their Spawn
	stdin   map[int]*os.File      // standard inputs of the daemons in started
	asking  map[int]*net.UnixConn // rsh agents on this host, by the ID of their Spawn
	asked   int                   // number of rsh agents so far
}

func newDaemons() daemons {
	return daemons{started: map[int]bool{}, stdin: map[int]*os.File{}, asking: map[int]*net.UnixConn{}}
}

// startDaemon starts a daemon for mpirun, which runs on another host.
func (w *Wireup) startDaemon(s *wire.Spawn) {
	if !w.daemons.begin(int(s.Id)) {
		return // a controller that has taken over repeats the request
	}
	child, err := w.tryDaemon(s)
	if err != nil {
		w.gang.Reports.Lines(job.Line{Source: job.SourceAgent, Host: w.gang.Host, Rank: -1, Time: hostclock.Now(), Text: "start Open MPI's daemon: " + err.Error(), Reason: job.ReasonDaemonLost})
		relay(w.gang.Reports, &wire.Relay{Id: s.Id, End: true, Code: 127})
		w.daemons.failed(int(s.Id))
		return
	}
	w.wg.Go(func() {
		<-child.Exited
		code := child.Status.ExitStatus()
		if child.Status.Signaled() {
			code = 128 + int(child.Status.Signal())
		}
		w.runtimeEnded(child)
		relay(w.gang.Reports, &wire.Relay{Id: s.Id, End: true, Code: int32(code)})
	})
}

func (w *Wireup) tryDaemon(s *wire.Spawn) (*process.Child, error) {
	if w.listener == nil {
		return nil, errors.New("this host's ranks could not be prepared")
	}
	argv, set, err := openmpi.ParseDaemon(string(s.Command))
	if err != nil {
		return nil, err
	}
	if _, err := w.self(); err != nil {
		return nil, err
	}
	env := environ.Overlay(w.gang.Env, openmpi.Expand(set, w.gang.Env), openmpi.DaemonEnv(s.Node, w.dirs.tmp, w.dirs.shm), []string{w.listener.env()})
	path, err := process.LookPath(argv[0], string(w.gang.Start.Workdir), env)
	if err != nil {
		in, ok := openmpi.Find("", env)
		if !ok || in.Daemon == "" || filepath.Base(in.Daemon) != filepath.Base(argv[0]) {
			return nil, err
		}
		path = in.Daemon
	}
	stdin, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	child, err := w.start(path, argv, env, stdin)
	if err != nil {
		_ = feed.Close()
		return nil, err
	}
	w.daemons.keepStdin(int(s.Id), feed)
	return child, nil
}

// serveRsh serves an rsh agent. It makes the controller start the daemon.
func (w *Wireup) serveRsh(conn *net.UnixConn, hello shim.Greeting, words *json.Decoder) {
	id := int32(w.daemons.ask(conn))
	w.gang.Reports.Add(func(m *wire.GangReply) {
		m.Spawns = append(m.Spawns, &wire.Spawn{Id: id, Node: hello.Node, Command: hello.Command})
	})
	input := bufio.NewReader(io.MultiReader(words.Buffered(), conn))
	_, _ = input.ReadByte() // the newline after the greeting
	for buffer := make([]byte, 4<<10); ; {
		n, err := input.Read(buffer)
		if n > 0 {
			relay(w.gang.Reports, &wire.Relay{Id: id, Data: slices.Clone(buffer[:n])})
		}
		if err != nil {
			break
		}
	}
	relay(w.gang.Reports, &wire.Relay{Id: id, End: true})
	// When an rsh agent ends, mpirun believes that the daemon has ended. So the rsh agent stays until relay tells it
	// that the daemon has ended.
	<-w.ended
}

// relay makes the controller pass on data of a daemon or an rsh agent.
func relay(q *report.Queue, r *wire.Relay) {
	q.Add(func(m *wire.GangReply) { m.Relays = append(m.Relays, r) })
}

// begin records that a daemon is being started. It returns false if it was started before.
func (d *daemons) begin(id int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started[id] {
		return false
	}
	d.started[id] = true
	return true
}

// failed records that a daemon could not be started.
func (d *daemons) failed(id int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.started, id)
}

func (d *daemons) keepStdin(id int, stdin *os.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stdin[id] = stdin
}

// ask records an rsh agent, and returns its id.
func (d *daemons) ask(conn *net.UnixConn) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	d.asking[d.asked] = conn
	return d.asked
}

// forget closes the connections to rsh agents. It returns how many rsh agents there have been.
func (d *daemons) forget() (asked int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, conn := range d.asking {
		_ = conn.Close()
		delete(d.asking, id)
	}
	return d.asked
}

// relay passes data from the controller to a daemon or an rsh agent of this host.
func (d *daemons) relay(r *wire.Relay) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := int(r.Id)
	if stdin := d.stdin[id]; stdin != nil {
		if len(r.Data) > 0 {
			_ = stdin.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = stdin.Write(r.Data) // the data is a short key; a daemon that does not get it fails with a message
		}
		if r.End {
			_ = stdin.Close()
			delete(d.stdin, id)
		}
		return
	}
	if conn := d.asking[id]; conn != nil && r.End {
		_ = json.NewEncoder(conn).Encode(struct{ Code int }{int(r.Code)})
		delete(d.asking, id)
	}
}

// close closes the daemons' standard inputs.
func (d *daemons) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, stdin := range d.stdin {
		_ = stdin.Close()
	}
}
