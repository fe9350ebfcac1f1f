package gang

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/internal/agent/process"
)

// earlyStop is a request to stop that arrived while the ranks were being started.
type earlyStop struct {
	asked bool
	grace time.Duration
}

// launchUntil starts the ranks. If a file system hangs, the kernel may never finish executing a program. If the gang
// must end, because of a request or because ctx ends, launchUntil waits for the grace period. It then kills the
// processes that have not executed their program yet, until the launch is over.
func (g *Gang) launchUntil(ctx context.Context) (early earlyStop) {
	launched := make(chan struct{})
	go func() { defer close(launched); g.start() }()
	round := time.NewTicker(process.KillEvery)
	defer round.Stop()
	gone := ctx.Done()
	var patience, kill <-chan time.Time
	for {
		select {
		case <-launched:
			return early
		case grace := <-g.inbox.stop:
			early = earlyStop{true, grace}
			patience = time.After(min(grace, StrayGrace))
		case <-gone:
			gone, patience = nil, time.After(min(g.grace(), StrayGrace))
		case <-patience:
			g.phase.advance(Ending)
			kill = round.C
		case <-kill:
			g.Children.KillUnexecuted()
		}
	}
}
