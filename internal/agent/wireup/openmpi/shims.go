package openmpi

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/shim"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// serve serves a shim or an rsh agent.
func (w *Wireup) serve(conn *net.UnixConn, pid int, hello shim.Greeting, words *json.Decoder) {
	w.processes.addHelper(pid)
	if !hello.Shim {
		w.serveRsh(conn, hello, words)
		return
	}
	w.mu.Lock()
	c := w.waiting[hello.Rank]
	delete(w.waiting, hello.Rank)
	w.mu.Unlock()
	if c != nil {
		w.serveShim(conn, hello, words, c)
	}
}

// serveShim makes a shim start its rank, and serves the shim until the rank has ended.
func (w *Wireup) serveShim(conn *net.UnixConn, hello shim.Greeting, words *json.Decoder, c *gang.Command) {
	pid, err := w.startRank(conn, hello, words, c)
	if err != nil {
		if !notify.Closed(w.ended) {
			why := gang.Describe(c.Argv[0], fmt.Errorf("start %q: %w", c.Path, err))
			w.gang.Abandon([]*gang.Command{c}, why, gang.StartCode(err), false)
		}
		return
	}
	child := w.gang.Adopt(c, pid, func() { w.proxy.started(c.Rank.Number(), pid) })
	if child == nil {
		return
	}
	if w.followShim(words, child) {
		return
	}
	// The shim was killed. Its rank is now a child of this agent. If the rank had ended before that, its exit status is
	// lost.
	w.shimLost(c.Rank.Number())
	for {
		select {
		case <-child.Exited:
			return
		case <-w.ended:
			return
		case <-time.After(process.KillEvery):
			if unix.Kill(child.PID, 0) == unix.ESRCH {
				w.gang.Children.Settle(child, unix.WaitStatus(unix.SIGKILL))
			}
		}
	}
}

// order returns what a shim needs to know to start a rank.
func (w *Wireup) order(c *gang.Command, hello shim.Greeting) (shim.Order, error) {
	order := shim.Order{Path: []byte(c.Path), Workdir: []byte(c.Dir), CPUs: c.CPUs}
	add := func(entries ...string) {
		for _, entry := range entries {
			order.Env = append(order.Env, []byte(entry))
		}
	}
	for _, entry := range openmpi.RankEnv(w.dirs.shm) {
		if name, _, _ := strings.Cut(entry, "="); environ.Lookup(w.gang.Env, name) == "" { // the user's values take precedence
			add(entry)
		}
	}
	add(c.Want...)
	add(c.Hints...)
	for _, arg := range c.Argv {
		order.Argv = append(order.Argv, []byte(arg))
	}
	server, err := w.proxy.redirect(c.Rank.Number(), hello.PMIx)
	add(server...)
	return order, err
}

// startRank makes a shim start a rank, and returns the rank's PID.
func (w *Wireup) startRank(conn *net.UnixConn, hello shim.Greeting, words *json.Decoder, c *gang.Command) (pid int, err error) {
	order, err := w.order(c, hello)
	if err == nil {
		err = sendFiles(conn, c.Files)
	}
	if err == nil {
		err = json.NewEncoder(conn).Encode(order)
	}
	var reply shim.Word
	if err == nil {
		err = words.Decode(&reply)
	}
	for err == nil && reply.Told { // Open MPI has told the shim to end; the result of the start comes next
		reply = shim.Word{}
		err = words.Decode(&reply)
	}
	switch {
	case err != nil:
		return 0, err
	case reply.Error != "":
		return 0, syscall.Errno(reply.Errno)
	case reply.PID <= 1:
		return 0, fmt.Errorf("its shim names process %d", reply.PID)
	}
	return reply.PID, nil
}

// followShim reads the reports of a shim about its rank. It returns true when the rank has ended, and false if the shim
// was killed before that.
func (w *Wireup) followShim(words *json.Decoder, child *process.Child) bool {
	for {
		var word shim.Word
		if words.Decode(&word) != nil {
			return false
		}
		if word.Told {
			w.orderEnd()
		}
		if word.Ended {
			w.gang.Children.Settle(child, unix.WaitStatus(word.Status))
			return true
		}
	}
}

// shimLost asks for the end of the gang because a shim was killed. It does nothing if Open MPI has announced before
// that it wants the gang to end, because Open MPI may then kill shims itself.
func (w *Wireup) shimLost(rank int) {
	if w.loseServer() {
		w.gang.RequestStopFor(-1, job.ReasonDaemonLost, fmt.Sprintf("Open MPI's daemon on %s has lost rank %d: the process that stood for it there was killed", w.gang.Host, rank))
	}
}
