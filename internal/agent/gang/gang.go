// Package gang runs the ranks of one attempt on this host. It starts the ranks, writes their output to log
// files, reports how they end, and ends every process that descends from them. It knows nothing about MPI: a
// Wireup helps the ranks to find each other.
package gang

import (
	"context"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/errorfile"
	"github.com/gangrun/gangrun/internal/agent/kernellog"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/internal/wire"
)

// Config has what is needed to start a gang.
type Config struct {
	Host     string
	Start    *wire.Start
	Env      []string // the environment of the agent
	Spooled  bool     // the gang's logs are in the agent's own directory
	Children *process.Children
	Group    *cgroup.Group // the control group of the ranks; nil if there is none
	Reports  *report.Queue
	// Saves watches the checkpoints that the gang writes, until ctx ends. steps returns the latest steps of
	// each rank. If Saves is nil, nobody watches the checkpoints.
	Saves func(ctx context.Context, steps func() [][]saves.Step)
}

// Gang is the part of an attempt that runs on this host.
type Gang struct {
	Config
	grew   notify.Broadcast // output has grown or ended
	logs   logFailure
	kernel *kernellog.Watch
	memory tempfiles.SharedMemory // shared memory that the ranks use
	begun  time.Time
	phase  progression
	living living
	inbox  inbox

	ready   chan struct{} // closed when the ranks have been started
	ranks   []*Rank       // complete once ready is closed
	wireup  Wireup
	runtime Runtime // the wireup if it starts the ranks; otherwise nil
}

// New returns a gang that has not been started. Run starts it.
func New(config Config) *Gang {
	return &Gang{
		Config: config,
		logs:   logFailure{release: make(chan struct{})},
		kernel: kernellog.Start(),
		begun:  time.Now(),
		living: newLiving(len(config.Start.Ranks)),
		inbox:  newInbox(),
		ready:  make(chan struct{}),
	}
}

// Run starts the ranks, and returns when every process of the gang is gone. If some processes cannot be killed,
// Run gives up after a while and returns the ranks to which these processes belong. The gang ends when its
// ranks end, when Take gets a request to stop, or when ctx ends because the controller is gone. After Run, the
// caller must call Done.
func (g *Gang) Run(ctx context.Context, wireup Wireup) (unreaped []int32) {
	g.wireup = wireup
	g.runtime, _ = wireup.(Runtime)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	go func() { defer close(served); wireup.Serve(serving, g.inbox.requests) }()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watches sync.WaitGroup
	defer func() {
		g.phase.advance(Over)
		stopWatching()
		watches.Wait()
		g.finish(func() { stopServing(); <-served })
	}()
	early := g.launchUntil(ctx)
	watches.Go(func() { g.watchStdin(watching) })
	watches.Go(func() { g.watchBeats(watching) })
	watches.Go(func() { g.sendPulses(watching) })
	watches.Go(func() { g.answerStacks(watching) })
	watches.Go(func() { g.watchHealth(watching) })
	if g.Saves != nil {
		watches.Go(func() { g.Saves(watching, g.steps) })
	}
	return g.supervise(ctx, early)
}

// Done makes the waiting calls of Take return false. The caller may call Done only after Run has returned.
func (g *Gang) Done() { close(g.inbox.ended) }

// supervise follows the ranks that were started until no process is left.
func (g *Gang) supervise(ctx context.Context, early earlyStop) (unreaped []int32) {
	end := ending{gang: g}
	g.phase.advance(Running)
	switch {
	case early.asked:
		end.begin(early.grace)
	case g.living.count() < len(g.Start.Ranks):
		end.begin(g.grace()) // a rank could not be started, so there is no gang
	}
	gone := ctx.Done()
	for {
		empty, orphans := g.Children.Empty()
		if g.living.count() > 0 {
			orphans = nil // from now on, this loop receives from exits instead
		} else if empty {
			return nil
		} else {
			end.sweep()
		}
		select {
		case r := <-g.living.exits:
			g.exited(r)
		case <-g.living.changed:
		case <-orphans:
		case grace := <-g.inbox.stop:
			end.begin(grace)
		case sig := <-g.inbox.signal:
			g.pass(sig)
		case <-gone:
			gone = nil
			end.begin(min(g.grace(), StrayGrace))
		case <-end.stray:
			end.killStrays()
		case <-end.kill:
			end.startKilling()
		case <-end.round:
			if !end.killRound() {
				return g.unreaped()
			}
		}
	}
}

// steps returns the latest steps of each rank.
func (g *Gang) steps() (all [][]saves.Step) {
	for _, r := range g.ranks {
		all = append(all, r.progress.History())
	}
	return all
}

// grace returns how long ranks may take to end after SIGTERM.
func (g *Gang) grace() time.Duration { return time.Duration(g.Start.GraceMs) * time.Millisecond }

// exited reports the end of a rank. If the rank has failed, exited also reports its last lines.
func (g *Gang) exited(r *Rank) {
	g.living.add(-1)
	r.poll() // the last heartbeats come before the report of the rank's end
	child := r.child.Load()
	exit := exitOf(r.number, child, g.Host, g.phase.endingBefore(child.When))
	g.wireup.Mark(&exit)
	if !exit.Good() {
		g.memory.Scan() // find the shared memory that the remaining ranks share with it
		// A rank whose GPU has failed may end with any exit code.
		if !exit.Stopped || exit.Core {
			g.Reports.Lines(g.kernel.Lines(g.Host, g.started())...)
		}
		g.Reports.Lines(r.evidence(g.Host)...)
		g.Reports.Lines(errorfile.Read(r.errorFile, g.Host, r.number)...)
	}
	g.Reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
}

// Grew returns the Broadcast that is notified when output of the gang has grown or ended.
func (g *Gang) Grew() *notify.Broadcast { return &g.grew }
