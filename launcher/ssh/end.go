package ssh

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/bridge"
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
	if g.expected() {
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
	deadline := g.left.Add(g.agents.OrphanGrace + endSlack)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	state := bridge.Failed // the last that a host has told
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryMost) {
		try, cancel := context.WithTimeout(ctx, retryLimit)
		found := g.join(try)
		cancel()
		found.close()
		if found.state == bridge.Gone {
			g.give(found.err)
			return nil
		}
		if found.state != bridge.Failed || ctx.Err() == nil { // else there was no time to ask
			state = found.state
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	switch {
	case time.Now().Before(deadline):
		return fmt.Errorf("%s may still have ranks until %s: its agent ends them when it has heard nothing for %s: %w", g.host, deadline.Format(time.TimeOnly), g.agents.OrphanGrace, context.Cause(ctx))
	case state == bridge.Ready || state == bridge.Ending:
		return fmt.Errorf("the agent on %s is still there %s after it has heard its controller last: %s may still have ranks", g.host, time.Since(g.left).Round(time.Second), g.host)
	}
	return nil
}

// expected reports whether an agent that has just been told to end may have heard it:
// not one that counts as lost for its silence.
func (g *agent) expected() bool {
	limit := retrySilent
	if g.agents.HostTimeout > 0 {
		limit = min(limit, g.agents.HostTimeout)
	}
	return time.Since(g.heard()) < limit
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
