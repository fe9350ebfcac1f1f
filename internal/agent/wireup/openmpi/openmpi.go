// Package openmpi starts the ranks of a gang through Open MPI's own processes: mpirun on the first host, and a
// daemon (orted or prted) on each other host. All of them are descendants of the agents. In place of each rank,
// Open MPI starts a shim. The shim gets the command of the rank from the agent, starts the rank, and stays its
// parent.
package openmpi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/agent/wireup"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Wireup implements gang.Runtime with the processes of Open MPI.
type Wireup struct {
	gang      *gang.Gang
	watch     *wireup.Watch
	proxy     *proxy
	listener  *listener // nil until Launch
	log       *runtimeLog
	dirs      directories
	processes processes
	daemons   daemons
	ended     chan struct{}
	wg        sync.WaitGroup

	mu      sync.Mutex
	waiting map[int]*gang.Command // ranks whose shims have not connected yet
	ordered bool                  // Open MPI wants the gang to end
	lost    time.Time             // when this host's ranks lost their PMIx server
}

// New returns the wire-up of a gang.
func New(g *gang.Gang) *Wireup {
	w := &Wireup{
		gang: g, ended: make(chan struct{}), log: newRuntimeLog(g), waiting: map[int]*gang.Command{},
		processes: processes{helpers: map[int]bool{}}, daemons: newDaemons(),
	}
	w.proxy = newProxy(w.log.fromRank, w.daemonLost)
	w.watch = wireup.NewWatch(g, wireup.State{
		Changed: w.proxy.changed, Wireup: w.state, Aborted: w.aborted, Request: w.request,
	}, false)
	return w
}

// startLimit limits how long mpirun may take to start the ranks of a host. mpirun sometimes hangs.
const startLimit = 2 * time.Minute

// Launch implements gang.Runtime. It prepares for the shims of the ranks and, on the first host, starts mpirun.
func (w *Wireup) Launch(ranks []*gang.Command) (err error) {
	if w.dirs, err = makeDirectories(w.gang); err != nil {
		return err
	}
	if w.listener, err = newListener(w.serve); err != nil {
		return err
	}
	w.mu.Lock()
	for _, c := range ranks {
		w.waiting[c.Rank.Number()] = c
	}
	w.mu.Unlock()
	if m := w.gang.Start.Mpirun; m != nil {
		if err := w.startMpirun(m, libraryOf(ranks)); err != nil {
			w.takeWaiting()
			return err
		}
	}
	w.wg.Go(func() {
		select {
		case <-time.After(startLimit):
			w.checkStarted()
		case <-w.ended:
		}
	})
	return nil
}

// Serve implements gang.Wireup.
func (w *Wireup) Serve(ctx context.Context, requests <-chan *wire.GangRequest) {
	w.watch.Run(ctx, requests)
	w.close()
}

// close ends the remaining processes, and removes the directories.
func (w *Wireup) close() {
	close(w.ended)
	if w.listener != nil {
		w.listener.close()
	}
	w.daemons.close()
	w.proxy.close()
	over := make(chan struct{})
	go func() { defer close(over); w.wg.Wait() }()
	notify.Wait(over, closeLimit) // mpirun, or a process that holds its output, may be impossible to kill
	w.log.complete()
	w.dirs.remove()
}

// closeLimit limits the wait for the end of mpirun's output.
const closeLimit = 2 * time.Second

// request handles a request of the controller.
func (w *Wireup) request(r *wire.GangRequest) {
	switch {
	case r.GetSpawn() != nil:
		w.startDaemon(r.GetSpawn())
	case r.GetRelay() != nil:
		w.daemons.relay(r.GetRelay())
	}
}

// Equip implements gang.Wireup. Open MPI provides the ranks with what they need.
func (w *Wireup) Equip(*gang.Command) error { return nil }

// Settle implements gang.Wireup. There is nothing to wait for. A rank exits with code 0 only after it has got the
// answer to its last message, and both pass through the agent.
func (w *Wireup) Settle(int, <-chan struct{}) {}

// Phase implements gang.Wireup.
func (w *Wireup) Phase(rank int) job.RankPhase {
	switch state, in, _ := w.proxy.state(rank); {
	case !in || state.Opaque:
		return job.PhaseUnknown
	case state.Finalized:
		return job.PhaseLeft
	case !state.Passed:
		return job.PhaseInit
	case state.Waiting:
		return job.PhaseBarrier
	}
	return job.PhaseWorking
}

// Mark implements gang.Wireup.
func (w *Wireup) Mark(e *job.Exit) {
	w.mu.Lock()
	if !w.lost.IsZero() && e.Time.After(w.lost) {
		e.Stopped = true
	}
	w.mu.Unlock()
	switch state, in, seen := w.proxy.state(e.Rank); {
	case !seen || state.Opaque:
		// what the rank did is unknown
	case !in:
		e.Joined = job.JoinedSilent
	case state.Finalized:
		e.Joined = job.JoinedFinalized
	default:
		e.Joined = job.JoinedInit
		if state.Aborted {
			wireup.MarkAbort(e, state.Code)
		}
	}
}

// Owns implements gang.Runtime.
func (w *Wireup) Owns(pid int) bool { return w.processes.owns(pid) }

// Ending implements gang.Runtime.
func (w *Wireup) Ending() {
	w.gang.Abandon(w.takeWaiting(), "another rank could not be started", 0, true)
}

// Dismiss implements gang.Runtime. Dismiss does nothing if Open MPI itself has asked for the end of the gang,
// because mpirun then still has something to print.
func (w *Wireup) Dismiss() {
	w.mu.Lock()
	ordered := w.ordered
	w.mu.Unlock()
	if !ordered {
		w.processes.kill(w.gang.Children)
	}
}

// Log implements gang.Runtime.
func (w *Wireup) Log() *output.Stream { return w.log.Stream }

// takeWaiting returns the ranks whose shims have not connected yet, and removes them from w.waiting.
func (w *Wireup) takeWaiting() (all []*gang.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(w.waiting)) {
		all = append(all, w.waiting[number])
	}
	clear(w.waiting)
	return all
}

// checkStarted asks for the end of the gang if mpirun has not started its ranks in time.
func (w *Wireup) checkStarted() {
	w.mu.Lock()
	missing := len(w.waiting)
	w.mu.Unlock()
	if missing > 0 && w.gang.Phase() < gang.Ending {
		w.gang.RequestStopFor(-1, job.ReasonDaemonLost, fmt.Sprintf("mpirun has not started %d ranks on %s within %s: Open MPI's daemon does not answer", missing, w.gang.Host, startLimit))
	}
}

// runtimeEnded is called when mpirun, or this host's daemon, has ended. If the process exited, it has seen the end of
// its ranks. The agent may not have recorded all these ends yet, so only ranks that still run count as left behind. If
// the process was killed, its ranks die with it.
func (w *Wireup) runtimeEnded(runtime *process.Child) {
	if runtime.Status.Signaled() || w.ranksRun() {
		w.daemonLost()
	}
}

// ranksRun reports whether the process of any rank of this host is running.
func (w *Wireup) ranksRun() bool {
	select {
	case <-w.gang.Ready():
	case <-w.ended:
		return false
	}
	return slices.ContainsFunc(w.gang.Ranks(), func(r *gang.Rank) bool {
		pid, ok := r.Living()
		if !ok {
			return false
		}
		p, ok := process.Read(pid)
		return ok && !p.Zombie
	})
}

// daemonLost asks for the end of the gang because mpirun, or this host's daemon, has left ranks behind. These ranks
// will fail for that reason.
func (w *Wireup) daemonLost() {
	if w.gang.Living() == 0 || !w.loseServer() {
		return
	}
	daemon := "Open MPI's daemon"
	if w.gang.Start.Mpirun != nil {
		daemon = "mpirun, which is Open MPI's daemon here,"
	}
	w.gang.RequestStopFor(-1, job.ReasonDaemonLost, fmt.Sprintf("%s has left its ranks on %s: it died", daemon, w.gang.Host))
}

// loseServer records that the ranks have lost their PMIx server. It returns false if that was recorded before, or if
// the controller or Open MPI is ending the gang.
func (w *Wireup) loseServer() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lost.IsZero() || w.ordered || w.gang.Phase() >= gang.Ending {
		return false
	}
	w.lost = time.Now()
	return true
}

// orderEnd reports to the controller that Open MPI wants the gang to end.
func (w *Wireup) orderEnd() {
	w.mu.Lock()
	first := !w.ordered && w.gang.Phase() < gang.Ending
	w.ordered = w.ordered || first
	w.mu.Unlock()
	if first {
		w.gang.Reports.Wireup(w.state())
	}
}

// state returns how far the ranks of this host have come.
func (w *Wireup) state() job.Wireup {
	w.mu.Lock()
	up := job.Wireup{MPI: job.MPIOpenMPI, In: []int{}, Ordered: w.ordered}
	w.mu.Unlock()
	for _, r := range w.gang.Ranks() {
		switch state, in, seen := w.proxy.state(r.Number()); {
		case in:
			up.In = append(up.In, r.Number())
			if state.Waiting {
				up.Waiting = append(up.Waiting, r.Number())
			}
		case seen || !r.Started():
			up.Silent = append(up.Silent, r.Number())
		}
	}
	return up
}

func (w *Wireup) aborted() (ranks []int) {
	for _, r := range w.gang.Ranks() {
		if state, _, _ := w.proxy.state(r.Number()); state.Aborted {
			ranks = append(ranks, r.Number())
		}
	}
	return ranks
}

// self returns a path of this program that is the same on all machines of the gang.
func (w *Wireup) self() (string, error) {
	if !w.gang.Start.Spread {
		return tempfiles.SelfPath(), nil
	}
	if w.dirs.link == "" {
		link, err := tempfiles.LinkSelf(w.gang.Start.Gang)
		if err != nil {
			return "", err
		}
		w.dirs.link = link
	}
	return w.dirs.link, nil
}
