package launcher

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/pmi1"
	"github.com/gangrun/gangrun/launcher/rankenv"
)

// node is one host's part of the running attempt.
type node struct {
	number     int // the index of the host in the placement
	agent      *agents.Agent
	ranks      []job.Rank
	lost       error     // why the agent of an adopted gang cannot be reached
	done       bool      // the host has reported Done, or is lost
	unanswered bool      // the host has not yet answered which of its ranks have joined
	spread     bool      // the gang is on several machines
	quiet      bool      // the host was reported as silent
	gone       time.Time // when the host was lost; its agent is being ended
	waitNoted  bool      // a note says that gangrun waits for the end of the lost host's ranks
	saves      saveWatch // whether the host watches the checkpoints of the gang

	fetched <-chan struct{} // closed when all output of the host has been fetched; nil if none is fetched

	mu     sync.Mutex // guards the fields below, and sends on the stream
	stream wire.Agent_GangClient
	order  *wire.GangRequest // the last order to stop; nil if there was none
}

// report is a message of a node, or the loss of its agent.
type report struct {
	node     *node
	events   []job.Event
	lines    []job.Line
	done     *wire.Done
	wireup   *job.Wireup
	standing *pmi1.WaitReport
	barriers []*wire.Barrier
	names    []*wire.Name
	pulses   *job.Pulses
	stacks   []*wire.StacksReply
	spawns   []*wire.Spawn
	relays   []*wire.Relay
	err      error // the agent is lost, or a reply cannot be decoded
	ended    bool  // the wait for the end of a lost agent is over; err says with which result
}

// pulseEvery is the shortest time between two looks at the ranks of a host.
const pulseEvery = time.Second

// start sends the node its ranks, and the last order to stop if there is one.
func (n *node) start(ctx context.Context, a job.Attempt, at rankenv.Rendezvous, universe int) error {
	if !n.agent.Link.Local {
		a.LogDir = "" // the logs are on the other machine, and collect fetches them from there
		if a.Trial() && a.Contain == nil && a.CheckpointDir != "" {
			a.CheckpointDir = path.Join(n.agent.Dir, "trial")
		}
	}
	start := &wire.Start{
		Gang: a.GangName(), LogDir: []byte(a.LogDir), Workdir: []byte(a.Workdir), CheckpointDir: []byte(a.CheckpointDir),
		Env: wire.Bytes(rankenv.Gang(a, at)), Steps: int32(a.Steps), GraceMs: time.Duration(a.Grace).Milliseconds(),
		Mpi: string(a.MPI), Size: int32(len(a.Placement.Ranks)), Universe: int32(universe), Alone: len(a.Placement.Hosts) == 1, Spread: n.spread || a.Contain != nil && len(a.Placement.Hosts) > 1,
		TellStdin: a.Trial(), Tty: string(a.TTY), Progress: []byte(a.Progress), Faulthandler: a.Faulthandler,
	}
	if a.Pulses {
		start.PulseMs = pulseEvery.Milliseconds()
	}
	start.WatchSaves, start.WatchLocal = n.saves != saveWatchNone, n.saves == saveWatchLocal
	if a.MPI == job.MPIMPICH {
		start.Mapping = pmi1.Mapping(nodesOf(a))
	}
	if a.MPI == job.MPIOpenMPI && n.number == 0 {
		start.Mpirun = mpirunOf(a, at)
	}
	for _, r := range n.ranks {
		app, number := a.App(r.Rank)
		argv, err := rankenv.Args(a, r)
		if err != nil {
			return err
		}
		start.Ranks = append(start.Ranks, &wire.RankStart{
			Rank: int32(r.Rank), Argv: wire.Bytes(argv), Env: wire.Bytes(append(rankenv.GPUs(a.GPUVisibility, n.ranks, r), rankenv.Rank(a, r)...)), Stdin: a.Stdin.Feeds(r.Rank),
			Appnum: int32(number), Workdir: []byte(app.Workdir), Hints: wire.Bytes(rankenv.Hints(a, r, n.spread)), Cpus: r.CPUs,
		})
	}
	if a.Adopt { // the agent knows the other settings
		start = &wire.Start{Gang: start.Gang}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	stream, err := n.agent.Client.Gang(ctx)
	if err != nil {
		return err
	}
	n.stream = stream
	if err := stream.Send(&wire.GangRequest{Kind: &wire.GangRequest_Start{Start: start}}); err != nil || n.order == nil {
		return err
	}
	return stream.Send(n.order)
}

// over reports whether gangrun expects nothing more from the node.
func (n *node) over() bool {
	if !n.done || n.fetched == nil {
		return n.done
	}
	select {
	case <-n.fetched:
		return true
	default:
		return false
	}
}

// stop tells the node to end its ranks. If the node has not been told to start them yet, the order is sent with the
// order to start. If the connection is broken, listen reports that.
func (n *node) stop(grace time.Duration) {
	if n.done {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.order = &wire.GangRequest{Kind: &wire.GangRequest_Stop{Stop: &wire.Stop{GraceMs: grace.Milliseconds()}}}
	if n.stream != nil {
		_ = n.stream.Send(n.order)
	}
}

// send sends a request. If the connection is broken, listen reports that.
func (n *node) send(r *wire.GangRequest) {
	if n.done {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stream != nil {
		_ = n.stream.Send(r)
	}
}

// listen sends the messages of the node to the channel to. It returns after the last message or when ctx ends.
func (n *node) listen(ctx context.Context, to chan<- report) {
	for {
		reply, err := n.stream.Recv()
		r := report{node: n, err: err}
		if err == nil {
			r, err = n.decode(reply)
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return
		}
		if err != nil || r.done != nil {
			return
		}
	}
}

func (n *node) decode(reply *wire.GangReply) (report, error) {
	r := report{node: n, done: reply.Done, barriers: reply.Barriers, names: reply.Names, spawns: reply.Spawns, relays: reply.Relays, stacks: reply.Stacks}
	if len(reply.Pulses) > 0 {
		r.pulses = &job.Pulses{}
		if err := exact.Unmarshal(reply.Pulses, r.pulses); err != nil {
			r.err = fmt.Errorf("pulses that cannot be decoded: %w", err)
			return r, r.err
		}
		r.pulses.Time = n.here(r.pulses.Time)
	}
	if len(reply.Wireup) > 0 {
		r.wireup = &job.Wireup{}
		if err := exact.Unmarshal(reply.Wireup, r.wireup); err != nil {
			r.err = fmt.Errorf("a wireup that cannot be decoded: %w", err)
			return r, r.err
		}
	}
	if len(reply.Standing) > 0 {
		r.standing = &pmi1.WaitReport{}
		if err := exact.Unmarshal(reply.Standing, r.standing); err != nil {
			r.err = fmt.Errorf("a wait report that cannot be decoded: %w", err)
			return r, r.err
		}
	}
	for _, data := range reply.Lines {
		var line job.Line
		if err := exact.Unmarshal(data, &line); err != nil {
			r.err = fmt.Errorf("a line that cannot be decoded: %w", err)
			return r, r.err
		}
		line.Time = n.here(line.Time)
		r.lines = append(r.lines, line)
	}
	for _, data := range reply.Events {
		var event job.Event
		if err := exact.Unmarshal(data, &event); err != nil {
			r.err = fmt.Errorf("an event that cannot be decoded: %w", err)
			return r, r.err
		}
		event.Time = n.here(event.Time)
		if event.Exit != nil {
			event.Exit.Time = n.here(event.Exit.Time)
		}
		r.events = append(r.events, event)
	}
	return r, nil
}

// here converts a time of the host's clock to the time of this machine's clock.
func (n *node) here(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-n.agent.Clock.Skew)
}

// gpus returns the UUIDs of the GPUs that the ranks of the node have.
func (n *node) gpus() (uuids []string) {
	for _, r := range n.ranks {
		uuids = append(uuids, r.Devices...)
	}
	slices.Sort(uuids)
	return slices.Compact(uuids)
}
