package agent

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/notify"
)

// gangs has the gangs that this agent has started. The agent runs one gang at a time.
type gangs struct {
	mu        sync.Mutex
	busy      bool                    // a gang is running
	started   map[string]*startedGang // by RUN/ATTEMPT; the newest gang and the gang before it
	last      string                  // the key of the newest gang in started
	contained *contained              // the agent that runs a gang which is not in started; nil if there is none
	grew      notify.Broadcast        // notified when started has a new entry
}

// errBusy is the error if a gang is refused because another gang is running.
var errBusy = status.Error(codes.FailedPrecondition, "this agent is running a gang already")

// dismiss records that no gang is running, so that the next gang can start.
func (g *gangs) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy = false
}

// add records a gang that is being started. g.mu is held.
func (g *gangs) add(name string, started *startedGang) {
	for old := range g.started { // a call of Output for an older gang has already found it
		if old != g.last {
			delete(g.started, old)
		}
	}
	g.busy, g.last = true, name
	g.started[name] = started
	g.grew.Notify()
}

// wait waits until the gang with that name has been started here.
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
