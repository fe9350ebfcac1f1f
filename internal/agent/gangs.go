package agent

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/notify"
)

// gangs are the gangs that this agent has started. It runs one at a time.
type gangs struct {
	mu        sync.Mutex
	busy      bool                    // a gang is running
	started   map[string]*startedGang // by RUN/ATTEMPT: the newest and the one before it
	last      string                  // the newest of started
	contained *contained              // runs a gang that is not in started; nil for none
	grew      notify.Broadcast        // started has a new entry
}

// errBusy is why a gang is refused.
var errBusy = status.Error(codes.FailedPrecondition, "this agent is running a gang already")

// dismiss records that no gang is running, so that the next one can start.
func (g *gangs) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy = false
}

// add records a gang that is being started. g.mu is held.
func (g *gangs) add(name string, started *startedGang) {
	for old := range g.started { // Output for an older gang has already found it
		if old != g.last {
			delete(g.started, old)
		}
	}
	g.busy, g.last = true, name
	g.started[name] = started
	g.grew.Notify()
}

// wait waits until a gang has been started here.
func (g *gangs) wait(ctx context.Context, name string) (*startedGang, error) {
	for {
		grew := g.grew.Changed()
		g.mu.Lock()
		started := g.started[name]
		g.mu.Unlock()
		if started != nil {
			return started, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
