package launcher

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/lifecycle"
)

// lose gives the ranks of a host the exit "lost", after the call to the agent of the host has failed with err. It
// starts a goroutine that ends the agent and then sends a report with the field ended.
func (g *running) lose(n *node, err error) {
	n.gone = time.Now()
	g.noteGap(n.gone)
	g.answered(n)
	err = n.agent.Why(err)
	text, lost := err.Error(), err
	if s, ok := status.FromError(err); ok {
		text, lost = s.Message(), agents.ErrAgentGone
		if s.Code() == codes.ResourceExhausted { // the agent still runs, but a resource that it needs is exhausted
			lost = errors.New(text)
		}
	}
	if paused := n.agent.EndedWhilePaused(g.silence.orphanGrace); paused != nil {
		lost = paused
	}
	g.outcome.Lines = append(g.outcome.Lines, job.Line{
		Source: job.SourceAgent, Host: n.agent.Host, Rank: -1, Time: n.gone,
		Text: fmt.Sprintf("%s is lost: %s", n.agent.Host, text),
	})
	last, stopped := n.gone, g.phase == lifecycle.Ending
	if n.agent.Link.Heard != nil { // the agent was gone at that time, perhaps long before gangrun noticed
		last = n.agent.Link.Heard()
		stopped = stopped && last.After(g.end.ordered)
	}
	if !g.end.cancelled.IsZero() { // the run was to end anyway, whatever ended the agent
		stopped = true
	}
	if n.lost != nil { // the agent was gone before this controller could stop it
		stopped = false
	}
	for _, r := range n.ranks {
		if !g.tally.seen[r.Rank] {
			g.exit(job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Lost, Time: last, Stopped: stopped, Text: agents.Why(lost).Error(), Reason: agents.Reason(lost)})
		}
	}
	if n.agent.Link.Local {
		// The agent was killed. The rest of the gang on this machine must end as soon as it would without a controller.
		g.restop(min(time.Duration(g.attempt.Grace), localGrace), job.StopFailure, "the agent on "+n.agent.Host+" is gone")
	}
	go func() { g.reports <- report{node: n, ended: true, err: g.drop(n.agent)} }()
}

// localGrace limits the grace period of a gang that has lost an agent on this machine.
const localGrace = 2 * time.Second

// noteAfter is how long the launcher waits for the ranks of a lost host before it emits a
// note.
const noteAfter = time.Second

// noteWaiting emits a note that names the lost hosts for which the launcher still waits.
func (g *running) noteWaiting() {
	for _, n := range g.nodes {
		if n.gone.IsZero() || n.done || n.waitNoted || time.Since(n.gone) < noteAfter {
			continue
		}
		n.waitNoted = true
		why := fmt.Sprintf("its agent ends them when it has had no contact for %s (--orphan-grace)", g.silence.orphanGrace)
		if n.agent.Link.Local {
			why = "what is left of its agent is ending them"
		}
		g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Host: n.agent.Host,
			Text: fmt.Sprintf("waiting until no rank of this attempt can be left on %s: %s", n.agent.Host, why)})
	}
}

// noteGap emits a note if this process did not run for a while since the last call. That time does not count as silence
// of a host.
func (g *running) noteGap(now time.Time) {
	last := g.silence.looked
	g.silence.looked = now
	gap := now.Sub(last)
	if last.IsZero() || gap < agents.SuspectAfter || !slices.ContainsFunc(g.nodes, func(n *node) bool { return !n.agent.Link.Local }) {
		return
	}
	text := fmt.Sprintf("gangrun itself stood still for %s (it was stopped or suspended, or this machine is overloaded): the silence of hosts counts from now on", gap.Round(100*time.Millisecond))
	if gap > g.silence.orphanGrace {
		text += fmt.Sprintf("; agents without contact for %s have ended their ranks (--orphan-grace)", g.silence.orphanGrace)
	}
	g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Text: text})
}

// suspect reports the hosts that have become silent, and the hosts that are in contact again.
func (g *running) suspect() {
	for _, n := range g.nodes {
		silence := n.agent.Silence()
		if n.over() || !n.gone.IsZero() || n.quiet == (silence > agents.SuspectAfter) {
			continue
		}
		n.quiet = !n.quiet
		e := job.Event{Time: time.Now(), Kind: job.KindSuspect, Attempt: g.attempt.Number, Host: n.agent.Host}
		last := e.Time.Add(-silence)
		e.Since = &last
		e.Text = fmt.Sprintf("%s is silent: no contact for %s", n.agent.Host, silence.Round(100*time.Millisecond))
		if trouble := n.agent.Trouble(); trouble != nil {
			e.Text += " (" + trouble.Error() + ")"
		}
		e.Text += fmt.Sprintf("; it counts as lost after %s", g.silence.hostTimeout)
		if !n.quiet {
			e.Kind, e.Since, e.Text = job.KindHeard, nil, n.agent.Host+" is in contact again, nothing was lost"
		}
		g.emitter.put(e)
	}
}

// hurryLimit is how long after Hurry the launcher still waits for a silent host.
const hurryLimit = time.Second

// abandonSilent declares silent hosts lost when hurryLimit has passed since Hurry.
func (g *running) abandonSilent() {
	if g.end.hurried.IsZero() || time.Since(g.end.hurried) < hurryLimit {
		return
	}
	for _, n := range g.nodes {
		if silence := n.agent.Silence(); !n.done && n.gone.IsZero() && silence >= agents.AbandonAfter {
			n.agent.Judge(silence)
			g.lose(n, agents.ErrNotAwaited) // the silence is the reason that is reported
		}
	}
}

// recordEnd records that the agent of a lost host has ended. If that is not certain, the ranks of the host are
// unreaped.
func (g *running) recordEnd(r report) {
	r.node.done = true
	if killed := r.node.agent.Link.Killed; killed != nil && r.err == nil {
		if text := killed(); text != "" {
			g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Host: r.node.agent.Host, Text: r.node.agent.Host + ": " + text})
		}
	}
	if r.err == nil {
		return
	}
	g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Host: r.node.agent.Host, Text: r.err.Error()})
	for _, rank := range r.node.ranks {
		if slices.ContainsFunc(g.outcome.Exits, func(x job.Exit) bool { return x.Rank == rank.Rank && x.Good() && !x.Stopped }) {
			continue // it ended well before the host was lost
		}
		g.outcome.Unreaped = append(g.outcome.Unreaped, job.Unreaped{Rank: rank.Rank, Host: rank.Host})
	}
}
