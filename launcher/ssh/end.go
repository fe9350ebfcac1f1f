package ssh

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/remote/bridge"
)

// Times of an agent's end.
const (
	// endSlack is how long an agent that has ended its ranks for want of a
	// controller may take for that.
	endSlack = 5 * time.Second
	// byeLimit is how long an agent may take to end that has been told to.
	byeLimit = 10 * time.Second
)

// end closes the stream and waits until the agent is gone: because it has ended in
// order, because the host says so, or because it has heard nothing for as long as
// an agent lives then.
func (g *agent) end(ctx context.Context) error {
	defer func() { g.cancel(); <-g.ended }()
	_ = g.stream.Close()
	if mayHear(time.Since(g.heard()), g.agents.HostTimeout) {
		bye, cancel := context.WithTimeout(ctx, byeLimit)
		defer cancel()
		if g.gone(bye) && g.over() {
			return nil
		}
	}
	g.cancel() // from here on it hears nothing
	<-g.ended
	if g.over() {
		return nil
	}
	if g.far {
		g.left = time.Now()
	}
	lives := g.agents.OrphanGrace + endSlack
	deadline := g.left.Add(lives)
	answered := false // the host has told once that the agent is there, which hears nothing by that
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
			g.give(found.err)
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s may still have ranks until %s: its agent ends them when it has heard nothing for %s: %w", g.host, deadline.Format(time.TimeOnly), g.agents.OrphanGrace, context.Cause(ctx))
		}
		switch there := found.state != bridge.Failed; {
		case there && !moved:
			// The host, or who stands before it, may have held back what was sent
			// before, which the agent then has heard until now.
			moved, answered = true, true
			deadline = time.Now().Add(lives)
		case !asked.Before(deadline): // nothing but what is answered now counts
			if !there {
				return nil
			}
			return fmt.Errorf("the agent on %s is still there %s after it has heard its controller last: %s may still have ranks", g.host, time.Since(g.left).Round(time.Second), g.host)
		case there:
			answered = true
		}
		select {
		case <-time.After(min(wait, max(0, time.Until(deadline)))):
		case <-ctx.Done():
		}
	}
}

// find asks for the agent, up to a time.
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

// mayHear reports whether an agent that has just been told to end, after some silence,
// may have heard it: not one that counts as lost for that.
func mayHear(silence, hostTimeout time.Duration) bool {
	limit := retrySilent
	if hostTimeout > 0 {
		limit = min(limit, hostTimeout)
	}
	return silence < limit
}

// gone waits until nothing is carried any more, and reports whether it has come to
// that.
func (g *agent) gone(ctx context.Context) bool {
	select {
	case <-g.ended:
	case <-ctx.Done():
		return false
	}
	return true
}
