package gang

import (
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// The methods in this file are those that a Wireup may call on its gang, from any goroutine.

// Ready returns a channel that is closed when the ranks have been started. If the Wireup is a Runtime, the
// channel is closed when the ranks are ready for the Runtime to start them.
func (g *Gang) Ready() <-chan struct{} { return g.ready }

// Ranks returns the ranks of this host. It may be called once the channel of Ready is closed.
func (g *Gang) Ranks() []*Rank { return g.ranks }

// Living returns how many ranks have not exited.
func (g *Gang) Living() int { return g.living.count() }

// Phase returns how far the gang has come.
func (g *Gang) Phase() Phase { return g.phase.get() }

// RequestStop asks the controller to end the whole gang, and gives the reason.
func (g *Gang) RequestStop(reason string) {
	g.Reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStop, Host: g.Host, Text: reason})
}

// RequestStopFor asks the controller to end the whole gang, and records the reason as a line of evidence. rank
// is the rank that the reason is about, or -1.
func (g *Gang) RequestStopFor(rank int, reason job.Reason, text string) {
	g.Reports.Lines(job.Line{Source: job.SourceAgent, Host: g.Host, Rank: rank, Time: hostclock.Now(), Text: text, Reason: reason})
	g.RequestStop(text)
}

// NoteSharedMemory notes which shared memory the ranks use, so that the agent can remove it if the ranks are
// killed. It does not wait: it reads in the background which files the ranks have mapped.
func (g *Gang) NoteSharedMemory() { g.memory.Scan() }

// Adopt takes over the process of a rank that the Runtime has started. It calls onStart before it reports the
// start. If the gang is over, Adopt kills the process and returns nil.
func (g *Gang) Adopt(c *Command, pid int, onStart func()) (child *process.Child) {
	ok := g.phase.unlessOver(func(phase Phase) {
		child = g.Children.Adopt(pid)
		c.Rank.child.Store(child)
		onStart()
		c.pump(g)
		g.watch(c.Rank)
		switch phase { // signalAll may not have signalled the process
		case Killing:
			_ = unix.Kill(pid, unix.SIGKILL)
		case Ending:
			g.Children.Signal(child, unix.SIGTERM)
		}
	})
	if !ok {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return child
}

// Abandon gives up ranks that the Runtime will not start, and reports them as not started. why is the reason,
// and code the exit code. The first of the ranks counts as the cause of the gang's end. But if stopped is true,
// none of them does, because the gang is being ended anyway.
func (g *Gang) Abandon(commands []*Command, why string, code int, stopped bool) {
	for i, c := range commands {
		g.phase.unlessOver(func(Phase) {
			c.pump(g)
			exit := job.Exit{
				Rank: c.Rank.number, Host: g.Host, Status: job.Unstarted, Code: code, Time: hostclock.Now(),
				Stopped: stopped || i > 0, Text: why,
			}
			g.Reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
			g.living.add(-1)
		})
	}
}
