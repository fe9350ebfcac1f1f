package gang

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/process"
)

const (
	// StrayGrace is the longest grace period of processes whose rank is dead or whose controller is gone.
	StrayGrace = 2 * time.Second
	// scanLimit limits the wait for a scan of the ranks' shared memory. The agent waits before it ends the ranks, and
	// again at the end of the gang.
	scanLimit = 250 * time.Millisecond
)

// ending is the end of a gang. It sends SIGTERM to every process. After StrayGrace, it kills the processes that do not
// descend from a living rank. After the grace period, it kills all processes that are left.
type ending struct {
	gang            *Gang
	strayAt, killAt time.Time
	giveUpAt        time.Time // processes that are left then count as impossible to kill
	swept           bool      // every process has been asked to end because no rank is alive
	strays          bool      // the processes that the ranks have left behind have been asked to end

	stray, kill, round <-chan time.Time
}

// begin asks every process to end. Later calls may shorten the grace period, but never extend it.
func (e *ending) begin(grace time.Duration) {
	g := e.gang
	if g.phase.get() < Ending {
		g.reportActivity()
		notify.Wait(g.memory.Scan(), scanLimit) // while the ranks are alive
		g.phase.advance(Ending)                 // a rank that has ended during the scan has ended by itself
	}
	if g.runtime != nil {
		g.runtime.Ending()
	}
	g.signalAll(unix.SIGTERM)
	e.killAt, e.strayAt = sooner(e.killAt, grace), sooner(e.strayAt, min(grace, StrayGrace))
	e.kill, e.stray = time.After(time.Until(e.killAt)), time.After(time.Until(e.strayAt))
}

// sweep ends the processes that the ranks have left behind. It is called when no rank is alive any more. If ranks on
// other hosts may still need the processes of the runtime, these may go on until the controller tells the gang to end.
func (e *ending) sweep() {
	g := e.gang
	phase := g.phase.get()
	grace := min(g.grace(), StrayGrace)
	switch {
	case e.swept || phase >= Killing:
	case g.runtime != nil && !g.Start.Alone && phase == Running:
		if !e.strays {
			e.strays = true
			g.signalAll(unix.SIGTERM)
			e.strayAt = sooner(e.strayAt, grace)
			e.stray = time.After(time.Until(e.strayAt))
		}
	default:
		e.swept = true
		if g.runtime != nil && phase == Ending {
			g.runtime.Dismiss()
		}
		e.begin(grace)
	}
}

// sooner returns the earlier of two times: set, and the time wait from now. If set is zero, it does not count.
func sooner(set time.Time, wait time.Duration) time.Time {
	if at := time.Now().Add(wait); set.IsZero() || at.Before(set) {
		return at
	}
	return set
}

// signalAll signals every process of the gang: first the ranks' process groups, then the processes
// that have left them. SIGCONT lets stopped processes act on the signal.
func (g *Gang) signalAll(sig unix.Signal) {
	groups := map[int]bool{}
	for _, r := range g.ranks {
		if child := r.child.Load(); child != nil && g.Children.Signal(child, sig) {
			g.Children.Signal(child, unix.SIGCONT)
			groups[child.PID] = true
		}
	}
	for _, p := range process.Descendants(os.Getpid()) {
		if g.ownedByRuntime(p.PID) {
			continue
		}
		if pgid, err := unix.Getpgid(p.PID); err == nil && !groups[pgid] {
			p.Signal(sig)
			p.Signal(unix.SIGCONT)
		}
	}
}

// killStrays kills the processes that do not descend from a living rank.
func (e *ending) killStrays() {
	e.strayAt = time.Time{} // strays that appear later get their own grace period
	var spared []int
	for _, r := range e.gang.ranks {
		if pid, ok := r.Living(); ok {
			spared = append(spared, pid)
		}
	}
	for _, p := range process.Descendants(os.Getpid()) { // parents come first
		if e.gang.ownedByRuntime(p.PID) {
			continue
		}
		if slices.Contains(spared, p.PID) || slices.Contains(spared, p.Parent) {
			spared = append(spared, p.PID)
		} else {
			p.Signal(unix.SIGKILL)
		}
	}
}

func (g *Gang) ownedByRuntime(pid int) bool { return g.runtime != nil && g.runtime.Owns(pid) }

// startKilling ends the grace period.
func (e *ending) startKilling() {
	e.gang.phase.advance(Killing)
	e.giveUpAt, e.round = time.Now().Add(process.KillLimit), time.After(0)
}

// killRound kills every process. When it has tried that for long enough, it returns false.
func (e *ending) killRound() bool {
	if time.Now().After(e.giveUpAt) {
		return false
	}
	process.KillRound(e.gang.Group)
	e.round = time.After(process.KillEvery)
	return true
}

// unreaped returns the ranks whose processes SIGKILL has not ended. If only descendants of ranks are left, unreaped
// returns the first rank of this host that failed or was ended, so that the next attempt does not use this host. If all
// ranks have ended well by themselves, it returns none, because they would then count as failed.
func (g *Gang) unreaped() []int32 {
	ranks := g.left()
	if empty, _ := g.Children.Empty(); len(ranks) > 0 || empty {
		return ranks
	}
	for _, r := range g.ranks {
		if child := r.child.Load(); child != nil && (child.Status != 0 || g.phase.endingBefore(child.When)) {
			return []int32{int32(r.number)}
		}
	}
	return nil
}

// left returns the ranks that are still alive after SIGKILL.
func (g *Gang) left() (ranks []int32) {
	for _, r := range g.ranks {
		if _, ok := r.Living(); ok {
			ranks = append(ranks, int32(r.number))
		}
	}
	return ranks
}

// finish waits until the last output is in the logs, and then closes everything. It calls stopWireup to end the wireup.
func (g *Gang) finish(stopWireup func()) {
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		for _, r := range g.ranks {
			r.pumps.Wait()
		}
	}()
	if !notify.Wait(pumped, StrayGrace) { // a disk is full, or a process that cannot be killed holds the pipe
		close(g.logs.release)
		for _, r := range g.ranks {
			_ = r.out.CutInput()
			_ = r.err.CutInput()
		}
		<-pumped
	}
	g.reportLostOutput()
	g.reportFlight()
	for _, r := range g.ranks {
		_ = r.out.CloseLog()
		_ = r.err.CloseLog()
		if r.beats != nil {
			_ = r.beats.Close()
			r.progress.Flush()
		}
		if r.stdin != nil {
			_ = r.stdin.Close()
		}
		r.flight.remove()
	}
	g.kernel.Close()
	stopWireup()
	if len(g.left()) == 0 {
		g.living.watches.Wait()
		notify.Wait(g.memory.Scan(), scanLimit) // a scan that has begun ends with the processes
		g.memory.Remove(g.begun)
	}
}
