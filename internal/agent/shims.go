package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/shim"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// hear serves a shim or an rsh agent.
func (o *openMPI) hear(conn *net.UnixConn, pid int, hello shim.Greeting, words *json.Decoder) {
	o.post(func() { o.pids[pid] = true })
	if hello.Shim {
		o.shim(conn, hello, words)
		return
	}
	o.rsh(conn, hello, words)
}

// rsh serves an rsh agent: the controller has the daemon started that it asks
// for.
func (o *openMPI) rsh(conn *net.UnixConn, hello shim.Greeting, words *json.Decoder) {
	id := 0
	if !o.post(func() {
		o.asked++
		id = o.asked
		o.asking[id] = conn
		reportSpawn(o.g.reports, &wire.Spawn{Id: int32(id), Node: hello.Node, Command: hello.Command})
	}) {
		return
	}
	input := io.MultiReader(words.Buffered(), conn)
	for buffer := make([]byte, 4<<10); ; {
		n, err := input.Read(buffer)
		if n > 0 {
			reportRelay(o.g.reports, &wire.Relay{Id: int32(id), Data: slices.Clone(buffer[:n])})
		}
		if err != nil {
			break
		}
	}
	reportRelay(o.g.reports, &wire.Relay{Id: int32(id), End: true})
	// mpirun's daemons see the end of their agent as their own: it stays until
	// the daemon has ended, which relay tells it.
	<-o.ended
}

// shim gives a rank to its shim and stays with it.
func (o *openMPI) shim(conn *net.UnixConn, hello shim.Greeting, words *json.Decoder) {
	var p prepared
	found := false
	if !o.post(func() {
		p, found = o.waiting[hello.Rank]
		delete(o.waiting, hello.Rank)
	}) || !found {
		return
	}
	r := p.rank
	what := shim.Order{Path: []byte(p.path), Workdir: []byte(p.attr.Dir), CPUs: p.cpus}
	for _, entry := range openmpi.RankEnv(o.shm) {
		if name, _, _ := strings.Cut(entry, "="); environ.Lookup(o.g.env, name) == "" { // what the user set wins
			what.Env = append(what.Env, []byte(entry))
		}
	}
	what.Env = append(what.Env, o.g.wanted(r.number)...)
	for _, hint := range p.hints {
		what.Env = append(what.Env, []byte(hint))
	}
	for _, arg := range p.argv {
		what.Argv = append(what.Argv, []byte(arg))
	}
	server, err := o.pmix.stand(r.number, hello.PMIx)
	for _, entry := range server {
		what.Env = append(what.Env, []byte(entry))
	}
	var said shim.Word
	if err == nil {
		err = sendFiles(conn, p.streams[:3])
	}
	if err == nil {
		err = json.NewEncoder(conn).Encode(what)
	}
	if err == nil {
		err = words.Decode(&said)
	}
	for err == nil && said.Told { // at once: what it is to start comes next
		said = shim.Word{}
		err = words.Decode(&said)
	}
	switch {
	case err == nil && said.Error != "":
		err = syscall.Errno(said.Errno)
	case err == nil && said.PID <= 1:
		err = fmt.Errorf("its shim names process %d", said.PID)
	}
	if err != nil {
		why := describe(&wire.RankStart{Argv: [][]byte{[]byte(p.argv[0])}}, fmt.Errorf("start %q: %w", p.path, err))
		o.post(func() { o.abandon([]prepared{p}, why, startCode(err), false) })
		return
	}
	var ch *process.Child
	if !o.post(func() {
		ch = o.g.children.Adopt(said.PID)
		r.child = ch
		o.pmix.started(r.number, ch.PID)
		r.pump(p.streams, o.g.release)
		o.g.watch(r)
		if o.g.killing {
			_ = unix.Kill(said.PID, unix.SIGKILL)
		} else if o.g.stopping {
			o.g.children.Signal(ch, unix.SIGTERM)
		}
	}) {
		return
	}
	for {
		said = shim.Word{}
		if words.Decode(&said) != nil {
			break
		}
		if said.Told {
			o.post(o.order)
		}
		if said.Ended {
			o.g.children.Settle(ch, unix.WaitStatus(said.Status))
			return
		}
	}
	// The shim was killed. Its rank is this agent's child now, unless it had ended
	// and nobody will ever know how.
	o.post(func() { o.shimLost(r) })
	for {
		select {
		case <-ch.Exited:
			return
		case <-o.ended:
			return
		case <-time.After(process.KillEvery):
			if unix.Kill(ch.PID, 0) == unix.ESRCH {
				o.g.children.Settle(ch, unix.WaitStatus(unix.SIGKILL))
			}
		}
	}
}

// shimLost ends the gang when a shim was killed, and not by Open MPI, which says
// before that it wants the gang to end.
func (o *openMPI) shimLost(r *rank) {
	if o.ordered || o.g.stopping || !o.lost.IsZero() {
		return
	}
	o.lost = time.Now()
	o.stop(fmt.Sprintf("Open MPI's daemon on %s has lost rank %d: the process that stood for it there was killed", o.g.host, r.number))
}

// order tells the controller that Open MPI wants the gang to end.
func (o *openMPI) order() {
	if !o.ordered && !o.g.stopping {
		o.ordered = true
		o.g.reports.Wireup(o.wireup())
	}
}

// missing lists the ranks whose shims have not come.
func (o *openMPI) missing() (all []prepared) {
	for _, n := range slices.Sorted(maps.Keys(o.waiting)) {
		all = append(all, o.waiting[n])
	}
	clear(o.waiting)
	return all
}

// abandon gives up ranks that will not be started, and reports whether there
// were any. The first of them is why the gang ends, unless it is being stopped.
func (o *openMPI) abandon(all []prepared, why string, code int, stopped bool) bool {
	for i, p := range all {
		p.rank.pump(p.streams, o.g.release)
		o.g.alive--
		exit := job.Exit{Rank: p.rank.number, Host: o.g.host, Status: job.Unstarted, Code: code, Time: hostclock.Now(), Stopped: stopped || i > 0, Text: why}
		o.g.reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
	}
	return len(all) > 0
}
