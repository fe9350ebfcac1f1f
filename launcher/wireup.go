package launcher

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/pmi1"
)

// wire handles a host's report of how its ranks find each other. It sends the other hosts what they need to know of
// that.
func (g *running) wire(r report) {
	for _, name := range r.names {
		for _, n := range g.nodes {
			if n != r.node && !name.Ask {
				n.send(&wire.GangRequest{Kind: &wire.GangRequest_Name{Name: name}})
			}
		}
		r.node.send(&wire.GangRequest{Kind: &wire.GangRequest_Name{Name: name}})
	}
	for _, b := range r.barriers {
		group, puts := string(b.Group), make([]pmi1.Pair, len(b.Puts))
		for i, p := range b.Puts {
			puts[i] = pmi1.Pair{Key: string(p.Key), Value: string(p.Value)}
		}
		all, done := g.wiring.barriers.hub.Enter(r.node.number, group, puts)
		if !done {
			continue
		}
		g.wiring.barriers.released[group]++
		release := &wire.Barrier{Group: b.Group, Number: g.wiring.barriers.released[group]}
		for _, p := range all {
			release.Puts = append(release.Puts, &wire.Pair{Key: []byte(p.Key), Value: []byte(p.Value)})
		}
		for _, n := range g.nodes {
			n.send(&wire.GangRequest{Kind: &wire.GangRequest_Release{Release: release}})
		}
	}
	for _, s := range r.spawns {
		g.spawn(r.node, s)
	}
	for _, s := range r.relays {
		g.relay(r.node, s)
	}
	if r.standing != nil {
		g.releaseStuck(r.node, r.standing)
	}
	if r.wireup == nil {
		return
	}
	g.wiring.see(*r.wireup)
	if up := g.wiring.wireup(); !g.wiring.allReported && len(up.In) == len(g.attempt.Placement.Ranks) {
		g.wiring.allReported, g.wiring.inquiry.overdue = true, nil
		g.emitWireup(up, up.Words(len(up.In)))
	}
	g.singletons()
	for _, e := range slices.Clone(g.outcome.Exits) { // the new report may turn a success into a failure
		if g.wiring.fault(e, len(g.attempt.Placement.Ranks)) != job.ReasonNone {
			g.exit(e)
		}
	}
	if g.wiring.openmpi.ordered && g.phase.MayEnd() && g.wiring.openmpi.judging == nil {
		g.wiring.openmpi.judging = time.After(settle) // a failed rank may be the reason; its report may still come
	}
	if r.wireup.Answer {
		g.answered(r.node)
	}
}

// seekInterval is the shortest time between two requests for the states of stuck ranks.
const seekInterval = time.Second

// releaseStuck records the states of a host's ranks. If ranks wait in a barrier that will never be complete, because
// other ranks wait for them, releaseStuck releases them from the barrier on all hosts.
func (g *running) releaseStuck(from *node, s *pmi1.WaitReport) {
	g.wiring.barriers.standing[from] = s.Ranks
	var all []pmi1.RankLinks
	for n, ranks := range g.wiring.barriers.standing {
		if !n.done {
			all = append(all, ranks...)
		}
	}
	free := pmi1.Releasable(all)
	if len(free) == 0 && (!s.Stuck || time.Since(g.wiring.barriers.lastSought) < seekInterval) {
		return
	}
	g.wiring.barriers.lastSought = time.Now()
	request := &wire.Part{}
	for _, rank := range free {
		request.Ranks = append(request.Ranks, int32(rank))
	}
	if len(free) > 0 {
		clear(g.wiring.barriers.standing) // the states are out of date now
	}
	for _, n := range g.nodes {
		n.send(&wire.GangRequest{Kind: &wire.GangRequest_Part{Part: request}})
	}
}

// answered records that a host has answered which of its ranks have joined. When all hosts that were asked have
// answered, it reports which ranks have joined.
func (g *running) answered(n *node) {
	if !n.unanswered {
		return
	}
	n.unanswered = false
	if g.wiring.inquiry.answers--; g.wiring.inquiry.answers > 0 || !g.wiring.inquiry.late {
		return
	}
	g.wiring.inquiry.late = false
	up := g.wiring.wireup()
	if !g.wiring.mpiNamed && len(up.In) == 0 && g.wiring.mpi != job.MPIOpenMPI {
		return // the program does not use MPI
	}
	g.emitWireup(up, fmt.Sprintf("after %s, %s", g.attempt.InitTimeout, up.Words(len(g.attempt.Placement.Ranks))))
}

// singletons ends a gang each of whose ranks would run the whole job, as rank 0 of 1.
func (g *running) singletons() {
	size := len(g.attempt.Placement.Ranks)
	text := g.wiring.alone(size)
	if text == "" || g.wiring.singletonsEnded {
		return
	}
	if !g.wiring.singletonsNoted {
		g.wiring.singletonsNoted = true
		g.emitWireup(g.wiring.wireup(), text)
	}
	if size > 1 && g.wiring.mpi != job.MPINone && (g.wiring.members.lasting || g.wiring.mpiNamed) {
		g.wiring.singletonsEnded = true
		g.outcome.Lines = append(g.outcome.Lines, job.Line{Source: job.SourceAgent, Rank: -1, Time: time.Now(), Text: text, Reason: job.ReasonSingleton})
		g.stop(time.Duration(g.attempt.Grace), job.StopFailure, text)
	}
}

func (g *running) emitWireup(up *job.Wireup, text string) {
	g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindWireup, Attempt: g.attempt.Number, Wireup: up, Text: text})
}

// overdue asks every host which of its ranks have called MPI_Init. When all hosts have answered, the method answered
// reports the result.
func (g *running) overdue() {
	g.wiring.inquiry.overdue = nil
	g.wiring.inquiry.late = true
	g.look()
}

// look asks every host that still runs ranks which of them have joined.
func (g *running) look() {
	for _, n := range g.nodes {
		if !n.done && n.gone.IsZero() && !n.unanswered {
			n.unanswered = true
			g.wiring.inquiry.answers++
			n.send(&wire.GangRequest{Kind: &wire.GangRequest_Look{Look: &wire.Look{}}})
		}
	}
}

// conclude looks for failures that can be seen only after all ranks have ended.
func (g *running) conclude() {
	if g.wiring.mpiNamed || len(g.wiring.members.joined) > 0 || g.wiring.members.library != "" {
		g.outcome.Wireup = g.wiring.wireup()
	}
	size := len(g.attempt.Placement.Ranks)
	if len(g.outcome.Exits) != size || !g.end.ordered.IsZero() {
		return
	}
	if fault := g.wiring.singletons(g.outcome.Exits, size); fault != "" {
		for _, e := range slices.Clone(g.outcome.Exits) {
			e.Reason, e.Fault = job.ReasonSingleton, fault
			g.exit(e)
		}
	}
}

// spawn sends mpirun's request for a daemon to the host of that daemon.
func (g *running) spawn(from *node, s *wire.Spawn) {
	for i, n := range g.nodes {
		if i > 0 && from.number == 0 && nodeName(i) == s.Node && g.wiring.openmpi.daemons[s.Id] == nil {
			g.wiring.openmpi.daemons[s.Id] = n
			n.send(&wire.GangRequest{Kind: &wire.GangRequest_Spawn{Spawn: s}})
			return
		}
	}
	from.send(&wire.GangRequest{Kind: &wire.GangRequest_Relay{Relay: &wire.Relay{Id: s.Id, End: true, Code: 255}}})
}

// relay passes on data between mpirun and a daemon, and the end of the daemon.
func (g *running) relay(from *node, r *wire.Relay) {
	to := g.wiring.openmpi.daemons[r.Id]
	if to == nil {
		return
	}
	if from != g.nodes[0] {
		to = g.nodes[0]
	}
	to.send(&wire.GangRequest{Kind: &wire.GangRequest_Relay{Relay: r}})
}
