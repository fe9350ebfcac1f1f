package launcher

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// settle is how long the gang is left alone after a rank has failed with
// nothing but an echo of another rank's failure: the culprit may still be
// writing its last words.
const settle = 500 * time.Millisecond

// lateLimit is how long after the grace period an agent may take to end its
// ranks before it counts as lost.
const lateLimit = 20 * time.Second

// Run starts the gang of an attempt and returns when every rank of it is gone,
// or is named in Outcome.Unreaped. When one rank fails the rest is ended within
// the attempt's grace; cancelling ctx ends them all the same way. An error
// means that the gang could not be started at all.
func (l *Launcher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if a.Adopt {
		return l.adopt(ctx, a, emit)
	}
	asked := a.MPI != job.MPIAuto && a.MPI != job.MPINone && a.MPI != ""
	nodes, at, err := l.gather(ctx, &a)
	var both mixed
	if errors.As(err, &both) && ctx.Err() == nil {
		return both.outcome(a, emit), nil
	}
	if ctx.Err() != nil {
		return job.Outcome{}, context.Cause(ctx) // whatever its end made of the calls
	}
	if away := Unreachable(err); len(away) > 0 {
		l.retire(away)
		return awayOutcome(a, away, emit), nil
	}
	if err != nil {
		return job.Outcome{}, err
	}
	return l.stay(ctx, a, asked, nodes, at, emit)
}

// stay stays with the gang of an attempt from its start to its end.
func (l *Launcher) stay(ctx context.Context, a job.Attempt, asked bool, nodes []*node, at rendezvous, emit func(job.Event)) (job.Outcome, error) {
	// The streams outlive ctx: its end is an order to stop, not to hang up.
	streams, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	g := &running{
		attempt: a, nodes: nodes, cascade: l.opts.Cascade,
		drop:    func(a *remote) error { return l.drop(context.Background(), a) },
		emitter: newEmitter(emit), hostTimeout: l.opts.HostTimeout, orphanGrace: l.opts.OrphanGrace,
		reports: make(chan report, 2*len(nodes)),
		seen:    map[int]bool{},
		wiring:  newWiring(a.MPI, asked, nodes),
	}
	if limit := time.Duration(a.InitTimeout); limit > 0 && a.MPI == job.MPIOpenMPI {
		g.wiring.overdue = time.After(limit) // it is mpirun that starts the ranks
	}
	if a.Adopt {
		g.drop = l.dropAdopted(nodes)
	}
	collected, err := l.collect(a, nodes, g.emitter.put)
	if err != nil {
		hangUp()
		g.emitter.close()
		return job.Outcome{}, err
	}
	var listeners sync.WaitGroup
	for _, n := range nodes {
		g.listening++
		listeners.Go(func() {
			err := n.lost
			if err == nil {
				err = n.start(streams, a, at, l.opts.Universe)
			}
			if err != nil {
				g.reports <- report{node: n, err: err}
				return
			}
			n.listen(streams, g.reports)
		})
	}
	feeding, unfeed := context.WithCancel(streams)
	fed := make(chan struct{})
	go func() { defer close(fed); l.feed(feeding, a, nodes) }()
	shown := l.show(a, nodes)
	asking, enough := context.WithCancel(streams)
	reminded := make(chan struct{})
	go func() { defer close(reminded); l.remind(asking, g.emitter.put) }()
	g.loop(ctx.Done(), l.hurry)
	g.conclude()
	unfeed()
	<-fed
	collected.wait(l.hurry, g.suspect)
	collected.keep()
	enough()
	<-reminded
	l.salvage(collected)
	g.account(collected)
	hangUp()
	listeners.Wait()
	g.emitter.close()
	shownSoon(l.life, shown)
	return g.outcome, nil
}

// Unreachable returns, by their names, the hosts that cannot be reached, if that is
// all that an error tells.
func Unreachable(err error) map[string]error {
	away := map[string]error{}
	all := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		all = many.Unwrap()
	}
	for _, one := range all {
		var gone *UnreachableError
		if !errors.As(one, &gone) {
			return nil
		}
		away[gone.Host] = one
	}
	return away
}

// awayOutcome is that of a gang of which hosts could not be reached: none of its
// ranks was started.
func awayOutcome(a job.Attempt, away map[string]error, emit func(job.Event)) job.Outcome {
	var o job.Outcome
	for _, r := range a.Placement.Ranks {
		e := job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Unstarted, Time: time.Now(), Stopped: true, Text: "another host cannot be reached"}
		if err := away[r.Host]; err != nil {
			e.Status, e.Stopped, e.Text = job.Lost, false, err.Error()
		}
		o.Exits = append(o.Exits, e)
		emit(job.Event{Time: e.Time, Kind: job.KindExit, Attempt: a.Number, Exit: &e})
	}
	return o
}

// gather finds the agents of the attempt's hosts, a port for the ranks to meet
// on, and the MPI that they meet by.
func (l *Launcher) gather(ctx context.Context, a *job.Attempt) (nodes []*node, at rendezvous, err error) {
	hosts := a.Placement.Hosts
	if len(hosts) == 0 {
		return nil, at, fmt.Errorf("attempt %d has no hosts", a.Number)
	}
	nodes = make([]*node, len(hosts))
	at.address = hosts[0].Address
	err = each(len(hosts), func(i int) error {
		agent, err := l.agent(ctx, hosts[i].Name)
		if err != nil {
			return err
		}
		nodes[i] = &node{number: i, agent: agent, ranks: a.Placement.On(hosts[i].Name)}
		if i == 0 {
			if a.MPI, err = l.resolve(ctx, *a, agent); err != nil {
				return err
			}
			reply, err := agent.client.Port(ctx, &wire.PortRequest{})
			if err != nil {
				return fmt.Errorf("find a free port on %s: %w", hosts[i].Name, failed(ctx, agent, err))
			}
			at.port = int(reply.Port)
		}
		return nil
	})
	if err != nil {
		return nodes, at, err
	}
	far := slices.ContainsFunc(nodes, func(n *node) bool { return !n.agent.link.Local })
	if !far { // whatever name or network this machine has
		at.address = loopback
	}
	for _, n := range nodes {
		n.spread = far && len(nodes) > 1
	}
	return nodes, at, nil
}

// running is a gang that has been started.
type running struct {
	attempt job.Attempt
	nodes   []*node
	cascade func(string) bool
	drop    func(*remote) error
	emitter *emitter
	reports chan report

	hostTimeout, orphanGrace time.Duration
	looked                   time.Time     // by stood
	gap                      time.Duration // the last time that it stood still for longer than an agent lives
	woke                     time.Time     // after that

	wiring *wiring

	outcome   job.Outcome
	seen      map[int]bool // ranks whose exit is in outcome
	started   int
	listening int // nodes that will still report
	stopping  bool
	stopped   time.Time // when it was first told to end
	cancelled time.Time // when the run was
	hurried   time.Time // when it was to end at once
	settling  <-chan time.Time
	failed    job.Exit // why it settles
	late      <-chan time.Time
}

// loop follows the gang to its end.
func (g *running) loop(cancelled, hurry <-chan struct{}) {
	tick := time.NewTicker(suspectEvery)
	defer tick.Stop()
	g.looked = time.Now()
	for g.listening > 0 {
		select {
		case <-tick.C:
			g.stood(time.Now())
			g.suspect()
			g.forsake()
			g.await()
		case r := <-g.reports:
			g.take(r)
		case <-g.settling:
			g.stop(time.Duration(g.attempt.Grace), g.failed.String())
		case <-cancelled:
			cancelled, g.cancelled = nil, time.Now()
			if g.wiring.mpi != job.MPINone {
				g.look()
			}
			g.stop(time.Duration(g.attempt.Grace), job.ToldToEnd)
		case <-g.wiring.overdue:
			g.overdue()
		case <-g.wiring.judging:
			g.wiring.judging = nil
			g.stop(time.Duration(g.attempt.Grace), "Open MPI ends the gang")
		case <-hurry:
			hurry, g.hurried = nil, time.Now()
			g.restop(0, job.ToldToEnd+" at once")
		case <-g.late:
			g.late = nil
			for _, n := range g.nodes {
				if !n.done && n.gone.IsZero() {
					g.lose(n, fmt.Errorf("its agent has not ended the ranks %s after the grace period", lateLimit))
				}
			}
		}
	}
}

func (g *running) take(r report) {
	if r.ended {
		g.listening--
		g.bury(r)
		return
	}
	if !r.node.gone.IsZero() {
		return // its last words after it was given up
	}
	for _, line := range r.lines {
		line.File = g.logFile(r.node, line)
		if line.Rank < 0 {
			line.Rank = g.wiring.speaker(line.Text)
		}
		g.outcome.Lines = append(g.outcome.Lines, line)
	}
	g.wire(r)
	for _, event := range r.events {
		g.event(event)
	}
	switch {
	case r.err != nil:
		g.lose(r.node, r.err)
	case r.done != nil:
		r.node.done = true
		g.answered(r.node)
		g.listening--
		for _, rank := range r.done.Unreaped {
			g.outcome.Unreaped = append(g.outcome.Unreaped, job.Unreaped{Rank: int(rank), Host: r.node.agent.host})
			if !g.seen[int(rank)] {
				g.exit(job.Exit{Rank: int(rank), Host: r.node.agent.host, Status: job.Lost, Time: time.Now(), Stopped: g.stopping, Text: "it does not die of SIGKILL"})
			}
		}
	}
}

// logFile is where a line of a node is found that its agent has sent: what is printed
// on other machines is in a log here, too.
func (g *running) logFile(n *node, line job.Line) string {
	name, spooled := strings.CutPrefix(line.File, n.agent.spool(g.attempt)+"/")
	if n.agent.link.Local || !spooled || line.Source != job.SourceStdout && line.Source != job.SourceStderr {
		return line.File
	}
	return filepath.Join(g.attempt.LogDir, name)
}

func (g *running) event(event job.Event) {
	event.Attempt = g.attempt.Number
	switch event.Kind {
	case job.KindExit:
		g.exit(*event.Exit)
		return
	case job.KindStop:
		g.stop(time.Duration(g.attempt.Grace), event.Text)
		return
	}
	g.emitter.put(event)
	if event.Kind == job.KindStarted {
		g.wiring.pids[event.PID] = event.Rank
		if g.started++; g.started == len(g.attempt.Placement.Ranks) {
			g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindAllStarted, Attempt: g.attempt.Number})
			if limit := time.Duration(g.attempt.InitTimeout); limit > 0 && g.wiring.mpi == job.MPIMPICH {
				g.wiring.overdue = time.After(limit)
			}
		}
	}
}

// exit records the end of a rank and, when it is the first failure, ends the
// others.
func (g *running) exit(e job.Exit) {
	if fault := g.wiring.fault(e, len(g.attempt.Placement.Ranks)); fault != "" {
		e.Fault = fault
	}
	// A rank may hear of the end from a peer before its agent does.
	e.Stopped = e.Stopped || !g.cancelled.IsZero() && e.Time.After(g.cancelled)
	if g.seen[e.Rank] { // more is known of it now
		i := slices.IndexFunc(g.outcome.Exits, func(o job.Exit) bool { return o.Rank == e.Rank })
		g.outcome.Exits[i] = e
	} else {
		g.seen[e.Rank] = true
		g.outcome.Exits = append(g.outcome.Exits, e)
	}
	g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindExit, Attempt: g.attempt.Number, Exit: &e})
	if e.Good() || e.Stopped || g.stopping {
		return
	}
	if e.Status == job.Exited && g.echo(e) {
		if g.settling == nil {
			g.settling, g.failed = time.After(settle), e
		}
		return
	}
	g.stop(time.Duration(g.attempt.Grace), e.String())
}

// echo reports whether the last thing that a rank said is an echo of another
// rank's failure.
func (g *running) echo(e job.Exit) bool {
	if g.cascade == nil {
		return false
	}
	last := ""
	for _, line := range g.outcome.Lines {
		if line.Rank == e.Rank && line.Source == job.SourceStderr && strings.TrimSpace(line.Text) != "" {
			last = line.Text
		}
	}
	return last != "" && g.cascade(last)
}

// restop ends a gang that is being ended already with another grace period.
func (g *running) restop(grace time.Duration, why string) {
	g.stopping = false
	g.stop(grace, why)
}

func (g *running) stop(grace time.Duration, why string) {
	if g.stopping {
		return
	}
	g.stopping = true
	if g.stopped.IsZero() {
		g.stopped = time.Now()
	}
	g.settling = nil
	g.late = time.After(grace + lateLimit)
	g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindStop, Attempt: g.attempt.Number, Text: why})
	for _, n := range g.nodes {
		n.stop(grace)
	}
}
