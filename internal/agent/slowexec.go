package agent

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/wire"
)

// early is what the controller asked for while the ranks were being started.
type early struct {
	requests []*wire.GangRequest
	stopped  bool
	grace    time.Duration // of the stop
}

// launchUntil starts the ranks. A program on a file system that hangs takes for ever to
// be executed: when the gang is to end, because of stop or of ctx, what has not been
// executed within the grace period is killed, until the launch is over.
func (g *gang) launchUntil(ctx context.Context, stop <-chan time.Duration) (asked early) {
	launched := make(chan struct{})
	go func() {
		defer close(launched)
		g.launch()
	}()
	round := time.NewTicker(process.KillEvery)
	defer round.Stop()
	gone := ctx.Done()
	var patience, kill <-chan time.Time
	for {
		select {
		case <-launched:
			return asked
		case r := <-g.requests:
			asked.requests = append(asked.requests, r)
		case asked.grace = <-stop:
			asked.stopped, patience = true, time.After(min(asked.grace, strayGrace))
		case <-gone:
			gone, patience = nil, time.After(min(g.grace(), strayGrace))
		case <-patience:
			g.stopping, g.stopped, kill = true, hostclock.Now(), round.C // the launch does not look at these
		case <-kill:
			g.children.KillUnexecuted()
		}
	}
}
