package agent

import (
	"cmp"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// Limits of ending a gang.
const (
	// strayGrace bounds the grace of processes whose rank is dead or whose
	// controller is gone.
	strayGrace = 2 * time.Second
	// sharedLimit bounds the look at the ranks' shared memory before they
	// are ended, and at the end.
	sharedLimit = 250 * time.Millisecond
)

// endSteps are the parts in which a limit is waited for: a process that was stopped
// meanwhile, or got no processor, has had no time for what is to come by then.
const endSteps = 25

// comes waits for done to be closed, and no longer than limit in which this process
// runs; false where that has not come.
func comes(done <-chan struct{}, limit time.Duration) bool {
	step := time.NewTicker(limit / endSteps)
	defer step.Stop()
	for range endSteps {
		select {
		case <-done:
			return true
		case <-step.C:
		}
	}
	return closed(done)
}

// sooner returns the time until which wait lasts from now on, or the earlier one
// that is set already.
func sooner(set time.Time, wait time.Duration) time.Time {
	if at := time.Now().Add(wait); set.IsZero() || at.Before(set) {
		return at
	}
	return set
}

// signalAll reaches every process of the gang: the ranks' process groups at
// once, then whatever has left them. SIGCONT lets stopped ones act on it.
func (g *gang) signalAll(sig unix.Signal) {
	groups := map[int]bool{}
	for _, r := range g.ranks {
		if r.child != nil && g.children.Signal(r.child, sig) {
			g.children.Signal(r.child, unix.SIGCONT)
			groups[r.child.PID] = true
		}
	}
	for _, p := range process.Descendants(os.Getpid()) {
		if g.ompi != nil && g.ompi.own(p.PID) {
			continue
		}
		if pgid, err := unix.Getpgid(p.PID); err == nil && !groups[pgid] {
			p.Signal(sig)
			p.Signal(unix.SIGCONT)
		}
	}
}

// killStrays kills what does not descend from a living leader.
func (g *gang) killStrays() {
	var spared []int
	for _, r := range g.ranks {
		if r.child != nil && !r.child.Ended() {
			spared = append(spared, r.child.PID)
		}
	}
	for _, p := range process.Descendants(os.Getpid()) { // parents come first
		if g.ompi != nil && g.ompi.own(p.PID) {
			continue
		}
		if slices.Contains(spared, p.PID) || slices.Contains(spared, p.Parent) {
			spared = append(spared, p.PID)
		} else {
			p.Signal(unix.SIGKILL)
		}
	}
}

// left names the ranks that outlived SIGKILL.
func (g *gang) left() (ranks []int32) {
	for _, r := range g.ranks {
		if r.child != nil && !r.child.Ended() {
			ranks = append(ranks, int32(r.number))
		}
	}
	return ranks
}

// mourn tells of ranks that have ended well, and of what they printed could not all be
// written: those have failed.
func (g *gang) mourn() {
	select {
	case line := <-g.broken: // which nobody has told
		g.reports.Lines(line)
	default:
	}
	for _, r := range g.ranks {
		lost := cmp.Or(r.out.Loss(), r.err.Loss())
		if lost == nil || r.child == nil || !r.child.Ended() {
			continue
		}
		if exit := r.exit(g.host, false); exit.Good() {
			exit.Fault = "not all that it printed could be kept: " + lost.Error()
			g.reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
		}
	}
}

// finish waits for the last bytes to reach the logs and closes everything.
func (g *gang) finish() {
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		for _, r := range g.ranks {
			r.pumps.Wait()
		}
	}()
	if !comes(pumped, strayGrace) { // a full disk, or a process that cannot be killed holds the pipe
		close(g.release)
		for _, r := range g.ranks {
			_ = r.out.CloseInput()
			_ = r.err.CloseInput()
		}
		<-pumped
	}
	g.mourn()
	for _, r := range g.ranks {
		_ = r.out.CloseLog()
		_ = r.err.CloseLog()
		if r.stdin != nil {
			_ = r.stdin.Close()
		}
	}
	g.kernel.Close()
	if g.meeting != nil {
		g.meeting.close()
	}
	if len(g.left()) == 0 {
		g.waiting.Wait()
		comes(g.shared.Scan(), sharedLimit) // one that is under way ends with the processes
		g.shared.Remove(g.begun)
	}
}
