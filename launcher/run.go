package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"

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
		attempt: a, nodes: nodes, cascade: l.opts.Cascade, drop: l.drop,
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
	g.loop(ctx.Done(), l.hurry)
	g.conclude()
	unfeed()
	<-fed
	collected.wait(l.hurry, g.suspect)
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
				return fmt.Errorf("find a free port on %s: %w", hosts[i].Name, ended(ctx, err))
			}
			at.port = int(reply.Port)
		}
		return nil
	})
	if err == nil && len(nodes) > 1 {
		for _, n := range nodes {
			n.spread = slices.ContainsFunc(nodes, func(o *node) bool { return !o.agent.link.Local })
		}
	}
	return nodes, at, err
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

	wiring *wiring

	outcome   job.Outcome
	seen      map[int]bool // ranks whose exit is in outcome
	started   int
	listening int // nodes that will still report
	stopping  bool
	stopped   time.Time // when it was first told to end
	cancelled time.Time // when the run was
	settling  <-chan time.Time
	failed    job.Exit // why it settles
	late      <-chan time.Time
}

// loop follows the gang to its end.
func (g *running) loop(cancelled, hurry <-chan struct{}) {
	tick := time.NewTicker(suspectEvery)
	defer tick.Stop()
	for g.listening > 0 {
		select {
		case <-tick.C:
			g.suspect()
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
			hurry = nil
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

// localGrace bounds the grace of a gang that has lost an agent on this machine.
const localGrace = 2 * time.Second

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

// lose gives a node up: its agent is ended, which bury hears of.
func (g *running) lose(n *node, err error) {
	n.gone = time.Now()
	g.answered(n)
	err = n.agent.why(err)
	text, lost := err.Error(), err.Error()
	if s, ok := status.FromError(err); ok {
		text, lost = s.Message(), "the agent on its host is gone"
	}
	g.outcome.Lines = append(g.outcome.Lines, job.Line{
		Source: job.SourceAgent, Host: n.agent.host, Rank: -1, Time: n.gone,
		Text: fmt.Sprintf("%s is lost: %s", n.agent.host, text),
	})
	last, stopped := n.gone, g.stopping
	if n.agent.link.Heard != nil { // it was gone by then, which may be long before it is told
		last = n.agent.link.Heard()
		stopped = g.stopping && last.After(g.stopped)
	}
	if !g.cancelled.IsZero() { // whatever it was that ended it, the run was to end
		stopped = true
	}
	if n.lost != nil { // before there was anybody to stop it
		stopped = false
	}
	for _, r := range n.ranks {
		if !g.seen[r.Rank] {
			g.exit(job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Lost, Time: last, Stopped: stopped, Text: lost})
		}
	}
	if n.agent.link.Local {
		// Somebody killed it: what is left of the gang on this machine ends as
		// soon as it would have without a controller.
		g.restop(min(time.Duration(g.attempt.Grace), localGrace), "the agent on "+n.agent.host+" is gone")
	}
	go func() { g.reports <- report{node: n, ended: true, err: g.drop(n.agent)} }()
}

// tellAfter is how long the end of a lost host's ranks is waited for before the
// user is told.
const tellAfter = time.Second

// await tells which lost hosts still have to be waited for.
func (g *running) await() {
	for _, n := range g.nodes {
		if n.gone.IsZero() || n.done || n.told || time.Since(n.gone) < tellAfter {
			continue
		}
		n.told = true
		g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Host: n.agent.host, Text: fmt.Sprintf(
			"waiting until no rank of this attempt can be left on %s: its agent ends them when it has heard nothing for %s (--orphan-grace)", n.agent.host, g.orphanGrace)})
	}
}

// Silence after which a host is suspect, and how often that is looked at.
const (
	suspectAfter = 3 * time.Second
	suspectEvery = 100 * time.Millisecond
)

// suspect tells which hosts have gone silent, or are heard again.
func (g *running) suspect() {
	for _, n := range g.nodes {
		silence := n.agent.silence()
		if n.over() || !n.gone.IsZero() || n.quiet == (silence > suspectAfter) {
			continue
		}
		n.quiet = !n.quiet
		e := job.Event{Time: time.Now(), Kind: job.KindSuspect, Attempt: g.attempt.Number, Host: n.agent.host}
		last := e.Time.Add(-silence)
		e.Since = &last
		e.Text = fmt.Sprintf("%s is silent: nothing was heard of it for %s", n.agent.host, silence.Round(100*time.Millisecond))
		if trouble := n.agent.trouble(); trouble != nil {
			e.Text += " (" + trouble.Error() + ")"
		}
		e.Text += fmt.Sprintf("; it counts as lost after %s", g.hostTimeout)
		if !n.quiet {
			e.Kind, e.Since, e.Text = job.KindHeard, nil, n.agent.host+" is heard again, nothing was lost"
		}
		g.emitter.put(e)
	}
}

// bury ends the account of a lost node: ranks whose end is not certain are
// unreaped.
func (g *running) bury(r report) {
	r.node.done = true
	if r.err == nil {
		return
	}
	for _, rank := range r.node.ranks {
		g.outcome.Unreaped = append(g.outcome.Unreaped, job.Unreaped{Rank: rank.Rank, Host: rank.Host})
	}
}
