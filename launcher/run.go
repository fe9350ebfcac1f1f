package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/collect"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/lifecycle"
	"github.com/gangrun/gangrun/launcher/rankenv"
)

// Run starts the gang of an attempt. It returns when every rank has ended or is listed in
// Outcome.Unreaped. When a rank fails, Run ends the other ranks within the attempt's grace
// period. When ctx ends, Run ends all ranks in the same way. An error means that the gang could
// not be started.
func (l *Launcher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if a.Adopt {
		return l.adopt(ctx, a, emit)
	}
	mpiNamed := a.MPI != job.MPIAuto && a.MPI != job.MPINone && a.MPI != ""
	nodes, at, mixedFiles, err := l.gather(ctx, &a)
	if err == nil {
		err = proveAlone(ctx, a, nodes, emit)
	}
	if cannot, ok := errors.AsType[*job.UncontainedError](err); ok && a.Box != nil && ctx.Err() == nil {
		return refused(a, cannot, emit), nil
	}
	var both mixed
	if errors.As(err, &both) && ctx.Err() == nil {
		return both.outcome(a, emit), nil
	}
	if ctx.Err() != nil {
		return job.Outcome{}, context.Cause(ctx) // the calls may have failed for other reasons because ctx ended
	}
	if away := agents.Unreachable(err); len(away) > 0 {
		l.blamePause(away)
		l.pool.Retire(slices.Collect(maps.Keys(away))...)
		return awayOutcome(a, away, emit), nil
	}
	if err != nil {
		return job.Outcome{}, err
	}
	if a.Watch != nil {
		_, err = lookAtFiles(ctx, a, nodes, false)
	}
	if err != nil {
		return job.Outcome{}, err
	}
	outcome, err := l.stay(ctx, a, mpiNamed, nodes, at, emit)
	outcome.Mixed = mixedFiles
	if a.Watch != nil && err == nil {
		outcome.Changed, err = lookAtFiles(context.WithoutCancel(ctx), a, nodes, true)
	}
	return outcome, err
}

// stay runs the gang of an attempt from its start to its end.
func (l *Launcher) stay(ctx context.Context, a job.Attempt, mpiNamed bool, nodes []*node, at rankenv.Rendezvous, emit func(job.Event)) (job.Outcome, error) {
	for len(l.orders.signals) > 0 {
		<-l.orders.signals // these signals were sent while no gang ran
	}
	// The streams live longer than ctx, because the end of ctx is an order to stop the gang.
	streams, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	g := &running{
		attempt: a, nodes: nodes, settling: settling{unclear: l.opts.Unclear, limit: cmp.Or(l.opts.Settle, settle)},
		drop:    func(a *agents.Agent) error { return l.pool.Drop(context.Background(), a) },
		emitter: newEmitter(emit), silence: silence{hostTimeout: l.opts.HostTimeout, orphanGrace: l.opts.OrphanGrace},
		reports: make(chan report, 2*len(nodes)),
		tally:   tally{seen: map[int]bool{}},
		noted:   l.noted, stacks: stacksAsks{asked: map[int64]*stacksAsked{}},
		wiring: newWiring(a.MPI, mpiNamed, nodes),
	}
	if limit := time.Duration(a.InitTimeout); limit > 0 && a.MPI == job.MPIOpenMPI {
		g.wiring.inquiry.overdue = time.After(limit) // mpirun starts the ranks, without a report to gangrun
	}
	if a.Adopt {
		g.drop = l.dropAdopted(nodes)
	}
	asks := l.showing(a, nodes)
	collected, err := l.logs.Start(a, sources(nodes), g.emitter.put)
	if err != nil {
		hangUp()
		g.emitter.close()
		return job.Outcome{}, err
	}
	for _, n := range nodes {
		n.fetched = collected.Over(n.number)
	}
	var listeners sync.WaitGroup
	for _, n := range nodes {
		g.tally.listening++
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
	go func() { defer close(fed); l.feed(feeding, a, nodes, g.emitter.put) }()
	shown := l.show(asks, nodes)
	stopRetrying := collected.Retry()
	g.loop(ctx.Done(), l.hurry, l.orders)
	g.conclude()
	unfeed()
	<-fed
	collected.Wait(g.suspect)
	stopRetrying()
	collected.FetchLeft(func(number int) bool { return !nodes[number].gone.IsZero() })
	g.account(collected)
	g.phase = g.phase.Next(lifecycle.Collected)
	hangUp()
	listeners.Wait()
	g.emitter.close()
	shownSoon(l.life, shown)
	return g.outcome, nil
}

// sources returns the hosts from which the output of an attempt is collected.
func sources(nodes []*node) []collect.Source {
	var all []collect.Source
	for _, n := range nodes {
		all = append(all, collect.Source{Number: n.number, Agent: n.agent, Ranks: n.ranks, Lost: n.lost})
	}
	return all
}

// account records which output has not arrived. If all ranks had succeeded, the ranks whose output is incomplete have
// failed.
func (g *running) account(c *collect.Collection) {
	well := !slices.ContainsFunc(g.outcome.Exits, func(e job.Exit) bool { return !e.Good() || e.Stopped })
	started := func(rank int) bool {
		return !slices.ContainsFunc(g.outcome.Exits, func(e job.Exit) bool { return e.Rank == rank && e.Status == job.Unstarted })
	}
	for _, m := range c.Missing(started) {
		if !well {
			continue
		}
		for _, e := range slices.Clone(g.outcome.Exits) {
			if slices.Contains(m.Ranks, e.Rank) {
				e.Reason, e.Stopped = job.ReasonOutputLost, m.Abandoned
				e.Fault = fmt.Sprintf("its output did not all arrive from %s: %s", m.Host, m.Why)
				g.exit(e)
			}
		}
	}
}

// blamePause replaces the reasons of hosts whose agents have ended because this process was paused.
func (l *Launcher) blamePause(away map[string]error) {
	for host := range away {
		if a := l.pool.Current(host); a != nil {
			if slept := a.EndedWhilePaused(l.opts.OrphanGrace); slept != nil {
				away[host] = slept
			}
		}
	}
}

// awayOutcome returns the outcome of a gang if some of its hosts could not be reached. None of its ranks was started.
func awayOutcome(a job.Attempt, away map[string]error, emit func(job.Event)) job.Outcome {
	var o job.Outcome
	for _, r := range a.Placement.Ranks {
		e := job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Unstarted, Time: time.Now(), Stopped: true, Text: "another host cannot be reached"}
		if err := away[r.Host]; err != nil {
			e.Status, e.Stopped, e.Text, e.Reason = job.Lost, false, agents.Why(err).Error(), agents.Reason(err)
		}
		o.Exits = append(o.Exits, e)
		emit(job.Event{Time: e.Time, Kind: job.KindExit, Attempt: a.Number, Exit: &e})
	}
	return o
}

// gather returns the agents of the attempt's hosts, with the containers or views of the ranks. It also returns the
// address and port at which the ranks meet, and sets the attempt's MPI. mixed is the value for job.Outcome.Mixed.
func (l *Launcher) gather(ctx context.Context, a *job.Attempt) (nodes []*node, at rankenv.Rendezvous, mixed bool, err error) {
	hosts := a.Placement.Hosts
	if len(hosts) == 0 {
		return nil, at, false, fmt.Errorf("attempt %d has no hosts", a.Number)
	}
	nodes = make([]*node, len(hosts))
	at.Address = hosts[0].Address
	err = agents.Each(len(hosts), func(i int) error {
		agent, err := l.pool.Get(ctx, hosts[i].Name)
		if err != nil {
			return err
		}
		nodes[i] = &node{number: i, agent: agent, ranks: a.Placement.On(hosts[i].Name)}
		if i == 0 && a.Box == nil { // in an image, the program is found only in the container
			return l.lead(ctx, a, agent, &at)
		}
		return nil
	})
	if err == nil && a.Box != nil {
		err = l.ready(ctx, nodes)
	}
	if err == nil && (a.Contain != nil || a.Box != nil) {
		mixed, err = l.contain(ctx, *a, nodes)
	}
	if err == nil && a.Box != nil {
		err = l.lead(ctx, a, nodes[0].agent, &at)
	}
	if err != nil {
		return nodes, at, mixed, err
	}
	far := slices.ContainsFunc(nodes, func(n *node) bool { return !n.agent.Link.Local })
	if !far { // whatever name or network this machine has
		at.Address = rankenv.Loopback
	}
	for _, n := range nodes {
		n.spread = far && len(nodes) > 1
	}
	watchSaves(*a, nodes)
	return nodes, at, mixed, nil
}

// lead makes the first host find the MPI of the attempt's program, and the port at which the ranks meet.
func (l *Launcher) lead(ctx context.Context, a *job.Attempt, agent *agents.Agent, at *rankenv.Rendezvous) error {
	how, err := l.resolve(ctx, *a, agent)
	if err != nil {
		return err
	}
	a.MPI, a.NoMPI = how.mpi, how.none && !l.opts.MPIEnv
	if how.found {
		a.EnvCompat = job.EnvCompatNone
	}
	reply, err := agent.Client.Port(ctx, &wire.PortRequest{})
	if err != nil {
		return fmt.Errorf("find a free port on %s: %w", agent.Host, agent.Failed(ctx, err))
	}
	at.Port = int(reply.Port)
	return nil
}
