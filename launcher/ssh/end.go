package ssh

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/remote/bridge"
)

// Limits for the end of an agent.
const (
	// endSlack is how long an agent takes at most to end its ranks after OrphanGrace.
	endSlack = 5 * time.Second
	// byeLimit is how long an agent may take to end after it was told to end.
	byeLimit = 10 * time.Second
)

// end closes the stream and waits until the agent is gone. The agent is gone if it has ended normally, if the host
// reports that it is gone, or if it has received nothing for OrphanGrace and endSlack. If end returns an error, the
// error says until when the host may have ranks.
func (g *agent) end(ctx context.Context) error {
	defer func() { g.cancel(); <-g.ended }()
	_ = g.stream.Close()
	if mayReceive(time.Since(g.lastContact()), g.agents.HostTimeout) {
		bye, cancel := context.WithTimeout(ctx, byeLimit)
		defer cancel()
		if g.streamEnds(bye) && g.isGone() {
			return nil
		}
	}
	g.cancel() // from now on, the agent receives nothing
	<-g.ended
	if g.isGone() {
		return nil
	}
	if g.relayed {
		g.left = time.Now()
	}
	return g.outlive(ctx)
}

// outlive waits until the agent has ended. Call it after the controller has stopped sending data to the agent, because
// the agent ends its ranks and itself when it has received nothing for OrphanGrace. Meanwhile outlive asks the host
// whether the agent still exists. These questions do not count as contact with the agent.
func (g *agent) outlive(ctx context.Context) error {
	lives := g.agents.OrphanGrace + endSlack
	deadline := g.left.Add(lives)
	answered := false // the host has reported once that the agent is there
	for wait, moved := retryFirst, false; ; wait = min(2*wait, retryMost) {
		asked := time.Now()
		until := deadline
		if late := !asked.Before(deadline); late && !answered {
			return nil
		} else if late {
			until = asked.Add(retryLimit)
		}
		found := g.find(ctx, until)
		if found.state == bridge.Gone {
			g.setTrouble(found.err)
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s may still have ranks until %s: its agent ends them when it has received nothing for %s: %w", g.host, deadline.Format(time.TimeOnly), g.agents.OrphanGrace, context.Cause(ctx))
		}
		switch there := found.state != bridge.Failed; {
		case there && !moved:
			// The agent may have received something until now, because the host or the network may have delayed earlier
			// data.
			moved, answered = true, true
			deadline = time.Now().Add(lives)
		case !asked.Before(deadline): // only an answer from after the deadline counts
			if !there {
				return nil
			}
			return fmt.Errorf("the agent on %s is still there %s after its last contact with the controller: %s may still have ranks", g.host, time.Since(g.left).Round(time.Second), g.host)
		case there:
			answered = true
		}
		select {
		case <-time.After(min(wait, max(0, time.Until(deadline)))):
		case <-ctx.Done():
		}
	}
}

// find asks the host whether the agent is there. It gives up at the time until.
func (g *agent) find(ctx context.Context, until time.Time) try {
	limit := time.Now().Add(retryLimit)
	if until.Before(limit) {
		limit = until
	}
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	found := g.join(ctx)
	found.close()
	return found
}

// mayReceive reports whether an agent that has been silent may still receive the end of the stream. An agent that
// counts as lost cannot receive it.
func mayReceive(silence, hostTimeout time.Duration) bool {
	limit := retrySilent
	if hostTimeout > 0 {
		limit = min(limit, hostTimeout)
	}
	return silence < limit
}

// streamEnds waits for the end of maintain. It returns false if ctx ends first.
func (g *agent) streamEnds(ctx context.Context) bool {
	select {
	case <-g.ended:
	case <-ctx.Done():
		return false
	}
	return true
}
