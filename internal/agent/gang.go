package agent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/errorfile"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/kernellog"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/pmi1"
)

// gang is this host's share of one attempt.
type gang struct {
	host     string
	start    *wire.Start
	spooled  bool // the logs are in the agent's own directory
	env      []string
	children *process.Children
	group    *cgroup.Group
	kernel   *kernellog.Watch
	reports  *report.Queue
	bell     notify.Broadcast // output has grown or ended

	meeting   meeting  // nil, wiring or ompi
	wiring    *wiring  // nil unless the ranks speak PMI-1
	ompi      *openMPI // nil unless the ranks are started by Open MPI
	joined    int      // ranks that have, when the controller was last told
	aborting  map[int]bool
	library   string // Open MPI's, that a singleton has initialised
	lasts     bool   // and goes on using
	suspect   process.Process
	suspected time.Time // since when suspect is
	waited    time.Time // since when ranks wait in a barrier, of PMI-1

	shared  tempfiles.SharedMemory // memory that the ranks share
	ranks   []*rank                // complete once ready is closed
	ready   chan struct{}
	release chan struct{} // closed: stuck pumps give up
	stuck   sync.Once
	piped   sync.Once     // the controller is told that there is no terminal
	broken  chan job.Line // at most one: the logs cannot be written

	begun    time.Time
	cancel   context.CancelFunc     // ends it as if the controller were gone
	stop     chan time.Duration     // asks for its end, with a grace period
	ended    chan struct{}          // closed when every process is gone
	released map[string]int64       // the newest release of each group
	requests chan *wire.GangRequest // all others
	exits    chan *rank
	waiting  sync.WaitGroup // who sends to exits
	alive    int            // leaders that have not exited
	stopping bool
	stopped  time.Time // when stopping became true
	killing  bool
}

func newGang(host string, start *wire.Start, env []string, c *process.Children, group *cgroup.Group, reports *report.Queue) *gang {
	return &gang{
		host: host, start: start, env: env, children: c, group: group, reports: reports,
		kernel:  kernellog.Start(),
		ready:   make(chan struct{}),
		release: make(chan struct{}),
		broken:  make(chan job.Line, 1),

		aborting: map[int]bool{},
		begun:    time.Now(),
		stop:     make(chan time.Duration),
		ended:    make(chan struct{}),
		released: map[string]int64{},
		requests: make(chan *wire.GangRequest),
		exits:    make(chan *rank, len(start.Ranks)),
	}
}

// logStuck is called by pumps that cannot write their log.
func (g *gang) logStuck(err error) {
	g.stuck.Do(func() {
		g.broken <- job.Line{Source: job.SourceAgent, Host: g.host, Rank: -1, Time: hostclock.Now(), Text: err.Error()}
	})
}

// run starts the ranks and returns when every process of the gang is gone, or
// when what is left cannot be killed: then it names the ranks. The gang ends
// by itself, by stop (a grace period), or when ctx ends (the controller is
// gone).
func (g *gang) run(ctx context.Context, stop <-chan time.Duration) (unreaped []int32) {
	defer g.finish()
	early := g.launchUntil(ctx, stop)
	var kill, stray, round, abort, look, part <-chan time.Time
	var killAt, strayAt, deadline time.Time
	gone := ctx.Done()
	if g.ompi == nil {
		look = nextLook(0)
	}
	end := func(grace time.Duration) {
		if !g.stopping {
			g.stopping, g.stopped = true, hostclock.Now()
			g.tellActivity()
			comes(g.shared.Scan(), sharedLimit) // while the ranks live
		}
		if g.ompi != nil {
			g.ompi.abandon(g.ompi.missing(), "another rank could not be started", 0, true)
		}
		g.signalAll(unix.SIGTERM)
		// Who is told again to end gets no more time for it.
		killAt, strayAt = sooner(killAt, grace), sooner(strayAt, min(grace, strayGrace))
		kill, stray = time.After(time.Until(killAt)), time.After(time.Until(strayAt))
	}
	switch {
	case early.stopped:
		end(early.grace)
	case g.alive < len(g.start.Ranks):
		end(g.grace()) // a rank could not be started: there is no gang
	}
	for _, r := range early.requests {
		if g.request(r) {
			part = nextPart(0)
		}
	}
	swept := false
	fed, stdin, unfed := g.stdinWaits()
	defer unfed()
	for {
		empty, change := g.children.Empty()
		if g.alive == 0 {
			if empty {
				return nil
			}
			if !swept && !g.killing {
				if g.ompi != nil && g.stopping && !g.ompi.ordered { // else mpirun has something to tell
					g.ompi.dismiss()
				}
				swept = true
				end(min(g.grace(), strayGrace))
			}
		}
		if g.alive > 0 {
			change = nil // exits tells
		}
		select {
		case r := <-g.exits:
			g.exited(r)
		case <-change:
		case <-g.changed():
			if g.rewired() {
				abort = time.After(abortWait)
			}
			if part == nil && g.wiring != nil {
				part = nextPart(0)
			}
		case <-stdin:
			g.tellStdin(fed)
		case <-part:
			part = g.part()
		case <-abort:
			abort = nil
			g.abort()
		case r := <-g.requests:
			if g.request(r) && part == nil {
				part = nextPart(0)
			}
		case f := <-g.acts():
			f()
		case <-look:
			look = nil
			if library, lasts := g.singleton(); library != "" && (g.library == "" || lasts) {
				g.library, g.lasts = library, lasts
				g.reports.Wireup(g.wireup())
			}
			if !g.lasts {
				look = nextLook(time.Since(g.begun))
			}
		case grace := <-stop:
			end(grace)
		case <-gone:
			gone = nil
			end(min(g.grace(), strayGrace))
		case line := <-g.broken:
			g.reports.Lines(line)
			g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStop, Host: g.host, Text: line.Text})
		case <-stray:
			strayAt = time.Time{} // strays that come later have their own
			g.killStrays()
		case <-kill:
			g.killing, deadline = true, time.Now().Add(process.KillLimit)
			round = time.After(0)
		case <-round:
			if time.Now().After(deadline) {
				return g.left()
			}
			process.KillRound(g.group)
			round = time.After(process.KillEvery)
		}
	}
}

// request does what the controller asks for, and reports whether that is to look at
// once at ranks that wait for each other.
func (g *gang) request(r *wire.GangRequest) (part bool) {
	switch {
	case r.GetRelease() != nil:
		if b := r.GetRelease(); b.Number > g.released[string(b.Group)] {
			g.released[string(b.Group)] = b.Number
			g.wiring.release(b)
		}
	case r.GetPart() != nil:
		g.wiring.sought, g.wiring.may = true, append(g.wiring.may, r.GetPart().Ranks...)
		return true
	case r.GetName() != nil:
		n := r.GetName()
		g.wiring.server.Hear(pmi1.Name{ID: n.Id, Service: string(n.Service), Port: string(n.Port), Ask: n.Ask})
	case r.GetSpawn() != nil:
		g.ompi.spawn(r.GetSpawn())
	case r.GetRelay() != nil:
		g.ompi.relay(r.GetRelay())
	case r.GetLook() != nil:
		up := g.wireup()
		up.Answer = true
		g.reports.Wireup(up)
	}
	return false
}

func (g *gang) grace() time.Duration { return time.Duration(g.start.GraceMs) * time.Millisecond }

// exited reports the end of a leader, with its last lines when it failed.
func (g *gang) exited(r *rank) {
	g.alive--
	exit := r.exit(g.host, g.stopping && r.child.When.After(g.stopped))
	if g.meeting != nil {
		g.meeting.mark(&exit)
	}
	if !exit.Good() {
		g.shared.Scan() // what the ranks that are left share with it
		if exit.Signal == int(unix.SIGKILL) && !exit.Stopped || exit.Core {
			g.reports.Lines(g.kernel.Lines(g.host)...)
		}
		g.reports.Lines(r.evidence(g.host)...)
		g.reports.Lines(errorfile.Read(r.errorFile, g.host, r.number)...)
	}
	g.reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
}

// acts is what is to be done for Open MPI's processes.
func (g *gang) acts() <-chan func() {
	if g.ompi == nil {
		return nil
	}
	return g.ompi.do
}

// follow returns a follower for each stream of the wanted ranks, once they have
// been started.
func (g *gang) follow(ctx context.Context, want *wire.OutputRequest) ([]*output.Follower, error) {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var followers []*output.Follower
	from := func(offsets []int64, i int) int64 {
		if i < len(offsets) {
			return max(0, offsets[i])
		}
		return 0
	}
	for _, r := range g.ranks {
		if i := slices.Index(want.Ranks, int32(r.number)); i >= 0 {
			followers = append(followers, &output.Follower{Stream: r.out, Offset: from(want.Out, i)}, &output.Follower{Stream: r.err, Offset: from(want.Err, i)})
		}
	}
	if i := slices.Index(want.Ranks, output.RuntimeRank); i >= 0 && g.ompi != nil {
		followers = append(followers, &output.Follower{Stream: g.ompi.words, Offset: from(want.Out, i)})
	}
	return followers, nil
}

// stdin returns the end of the rank's standard input to write to.
func (g *gang) stdin(ctx context.Context, number int) (*os.File, error) {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for _, r := range g.ranks {
		if r.number == number && r.stdin != nil {
			return r.stdin, nil
		}
	}
	return nil, fmt.Errorf("rank %d takes no standard input here", number)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
