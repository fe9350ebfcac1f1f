package launcher

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/lifecycle"
)

// settle is the default of Options.Settle.
const settle = 500 * time.Millisecond

// lateLimit is how long an agent may take to end its ranks after the grace period. After that time, the agent counts as
// lost.
const lateLimit = 20 * time.Second

// daemonLimit is how long Open MPI's daemons may take to end after the last rank. The agents then end them.
const daemonLimit = 2 * time.Second

// running is a gang that has been started.
type running struct {
	attempt job.Attempt
	nodes   []*node
	drop    func(*agents.Agent) error // ends a lost agent; when drop returns, no rank of that agent is left
	emitter *emitter
	reports chan report

	phase    lifecycle.Phase
	end      end
	settling settling
	silence  silence
	wiring   *wiring
	stacks   stacksAsks
	noted    map[string]bool // notes that agents have sent, in all attempts

	outcome job.Outcome
	tally   tally
}

// tally counts what the agents have reported.
type tally struct {
	seen      map[int]bool // ranks whose exit is in the outcome
	started   int
	listening int // nodes that have not yet reported the end of their ranks
}

// end says when the gang was ordered to end.
type end struct {
	ordered   time.Time        // time of the first order to end
	cancelled time.Time        // when the run was cancelled; zero if it was not
	hurried   time.Time        // when Hurry ended the grace period
	overdue   <-chan time.Time // fires when agents have had the grace period and lateLimit to end their ranks
	daemons   <-chan time.Time // fires when Open MPI's daemons have had daemonLimit to end after the last rank
}

// settling is a wait after a failure whose cause is unclear. The rank that caused the failure may not have reported
// yet.
type settling struct {
	unclear func(job.Exit, []job.Line) bool
	limit   time.Duration
	over    <-chan time.Time // fires when the wait is over; nil if there is no wait
	failed  job.Exit         // the unclear failure
}

// silence has the limits on the time since the last contact with a host.
type silence struct {
	hostTimeout, orphanGrace time.Duration
	looked                   time.Time // when noteGap was called last
}

// loop follows the gang to its end.
func (g *running) loop(cancelled, hurry <-chan struct{}, orders orders) {
	tick := time.NewTicker(agents.SuspectEvery)
	defer tick.Stop()
	g.silence.looked = time.Now()
	defer func() { g.phase = g.phase.Next(lifecycle.RanksGone) }()
	for g.tally.listening > 0 {
		select {
		case <-tick.C:
			g.noteGap(time.Now())
			g.suspect()
			g.abandonSilent()
			g.noteWaiting()
			g.answerStacks(time.Now())
		case r := <-g.reports:
			g.take(r)
			g.answerStacks(time.Now())
		case ask := <-orders.stacks:
			g.askStacks(ask)
		case <-g.settling.over:
			if g.takePending(); g.tally.listening > 0 {
				g.stop(time.Duration(g.attempt.Grace), job.StopFailure, g.settling.failed.String())
			}
		case <-cancelled:
			cancelled, g.end.cancelled = nil, time.Now()
			if g.wiring.mpi != job.MPINone {
				g.look()
			}
			g.stop(time.Duration(g.attempt.Grace), job.StopOrder, "gangrun was told to end the gang")
		case <-g.wiring.inquiry.overdue:
			if g.takePending(); !g.wiring.allReported {
				g.overdue()
			}
		case <-g.wiring.openmpi.judging:
			g.wiring.openmpi.judging = nil
			if g.takePending(); g.tally.listening > 0 {
				g.stop(time.Duration(g.attempt.Grace), job.StopFailure, "Open MPI ends the gang")
			}
		case <-hurry:
			hurry, g.end.hurried = nil, time.Now()
			g.restop(0, job.StopHurry, "gangrun was told to end the gang at once")
		case sig := <-orders.signals:
			for _, n := range g.nodes {
				if !g.attempt.Trial() {
					n.send(&wire.GangRequest{Kind: &wire.GangRequest_Signal{Signal: &wire.Signal{Number: int32(sig)}}})
				}
			}
		case <-g.end.daemons:
			g.end.daemons = nil
			for _, n := range g.nodes {
				n.stop(0) // no rank is left
			}
		case <-g.end.overdue:
			g.end.overdue = nil
			if g.takePending(); g.end.overdue != nil { // a newer order to end has set a new limit
				break
			}
			for _, n := range g.nodes {
				if !n.done && n.gone.IsZero() {
					g.lose(n, fmt.Errorf("its agent has not ended the ranks %s after the grace period", lateLimit))
				}
			}
		}
	}
}

// takePending handles the reports that arrived before a timer fired. If this process did not run for a while, both are
// ready at the same time.
func (g *running) takePending() {
	for range len(g.reports) {
		g.take(<-g.reports)
	}
}

func (g *running) take(r report) {
	if r.ended {
		g.tally.listening--
		g.recordEnd(r)
		return
	}
	if !r.node.gone.IsZero() {
		return // the agent counts as lost
	}
	for _, line := range r.lines {
		line.File = g.logFile(r.node, line)
		if line.Rank < 0 {
			line.Rank = g.wiring.speaker(line.Text)
		}
		g.outcome.Lines = append(g.outcome.Lines, line)
	}
	g.wire(r)
	for _, reply := range r.stacks {
		g.takeStacks(r.node, reply)
	}
	if r.pulses != nil {
		g.emitter.put(job.Event{Time: r.pulses.Time, Kind: job.KindPulse, Attempt: g.attempt.Number, Host: r.node.agent.Host, Pulses: r.pulses})
	}
	for _, event := range r.events {
		g.event(event)
	}
	switch {
	case r.err != nil:
		g.lose(r.node, r.err)
	case r.done != nil:
		r.node.done = true
		g.answered(r.node)
		g.tally.listening--
		for _, rank := range r.done.Unreaped {
			g.outcome.Unreaped = append(g.outcome.Unreaped, job.Unreaped{Rank: int(rank), Host: r.node.agent.Host})
			if !g.tally.seen[int(rank)] {
				g.exit(job.Exit{Rank: int(rank), Host: r.node.agent.Host, Status: job.Lost, Time: time.Now(), Stopped: g.phase == lifecycle.Ending, Text: "it does not die of SIGKILL"})
			}
		}
	}
}

// logFile returns the path on this machine of the file of a line. The logs of other machines are copied to this
// machine.
func (g *running) logFile(n *node, line job.Line) string {
	name, spooled := strings.CutPrefix(line.File, n.agent.Spool(g.attempt)+"/")
	if n.agent.Link.Local || !spooled || line.Source != job.SourceStdout && line.Source != job.SourceStderr {
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
		g.stop(time.Duration(g.attempt.Grace), job.StopFailure, event.Text)
		return
	case job.KindNote: // many hosts may send the same note
		if g.noted[event.Text] {
			return
		}
		g.noted[event.Text] = !g.attempt.Trial() // notes of a trial are not shown
		event.Text = "on " + event.Host + ": " + event.Text
	}
	g.emitter.put(event)
	if event.Kind == job.KindStarted {
		g.wiring.openmpi.started(event.PID, event.Rank)
		if g.tally.started++; g.tally.started == len(g.attempt.Placement.Ranks) {
			g.phase = g.phase.Next(lifecycle.AllStarted)
			g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindAllStarted, Attempt: g.attempt.Number})
			if limit := time.Duration(g.attempt.InitTimeout); limit > 0 && g.wiring.mpi == job.MPIMPICH {
				g.wiring.inquiry.overdue = time.After(limit)
			}
		}
	}
}

// exit records the end of a rank. If this is the first failure, exit ends the other ranks.
func (g *running) exit(e job.Exit) {
	if reason := g.wiring.fault(e, len(g.attempt.Placement.Ranks)); reason != job.ReasonNone {
		e.Reason, e.Fault = reason, faults[reason]
	}
	// A rank may learn from another rank that the gang ends, before the rank's agent learns it.
	e.Stopped = e.Stopped || !g.end.cancelled.IsZero() && e.Time.After(g.end.cancelled)
	if g.tally.seen[e.Rank] { // the new report has more information
		i := slices.IndexFunc(g.outcome.Exits, func(o job.Exit) bool { return o.Rank == e.Rank })
		g.outcome.Exits[i] = e
	} else {
		g.tally.seen[e.Rank] = true
		g.outcome.Exits = append(g.outcome.Exits, e)
	}
	g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindExit, Attempt: g.attempt.Number, Exit: &e})
	if !g.phase.MayEnd() {
		return
	}
	if e.Good() && g.wiring.mpi == job.MPIOpenMPI && len(g.nodes) > 1 && len(g.tally.seen) == len(g.attempt.Placement.Ranks) {
		g.end.daemons = time.After(daemonLimit) // an agent does not know whether another host still has ranks
	}
	if e.Good() || e.Stopped {
		return
	}
	if e.Status == job.Exited && g.leavesOpen(e) {
		if g.settling.over == nil {
			g.settling.over, g.settling.failed = time.After(g.settling.limit), e
		}
		return
	}
	g.stop(time.Duration(g.attempt.Grace), job.StopFailure, e.String())
}

// leavesOpen reports whether the output of a rank leaves it open why the rank ended.
func (g *running) leavesOpen(e job.Exit) bool {
	if g.settling.unclear == nil {
		return false
	}
	var printed []job.Line
	for _, line := range g.outcome.Lines {
		if line.Rank == e.Rank {
			printed = append(printed, line)
		}
	}
	return g.settling.unclear(e, printed)
}

// stop orders the agents to end the gang. It does nothing if they have that order already, or if no rank is left.
func (g *running) stop(grace time.Duration, why job.StopReason, text string) {
	if g.phase.MayEnd() {
		g.restop(grace, why, text)
	}
}

// restop orders the agents to end the gang, even if they have that order already. The new grace period replaces the old
// one.
func (g *running) restop(grace time.Duration, why job.StopReason, text string) {
	g.phase = g.phase.Next(lifecycle.EndOrdered)
	if g.end.ordered.IsZero() {
		g.end.ordered = time.Now()
	}
	g.settling.over = nil
	g.end.overdue = time.After(grace + lateLimit)
	g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindStop, Attempt: g.attempt.Number, Stop: why, Text: text})
	for _, n := range g.nodes {
		n.stop(grace)
	}
}
