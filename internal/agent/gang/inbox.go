package gang

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/wire"
)

// inbox receives the controller's requests.
type inbox struct {
	stop     chan time.Duration     // requests to end the gang, with a grace period
	signal   chan unix.Signal       // signals to send to the ranks
	stacks   chan *wire.Stacks      // requests for the stacks of the ranks
	requests chan *wire.GangRequest // all other requests, which are for the wireup
	ended    chan struct{}          // closed when nobody reads the other channels any more
}

func newInbox() inbox {
	return inbox{stop: make(chan time.Duration), signal: make(chan unix.Signal, 4), stacks: make(chan *wire.Stacks, 4), requests: make(chan *wire.GangRequest), ended: make(chan struct{})}
}

// Take passes a request of the controller to the gang or to its Wireup. It returns false once the
// gang has ended.
func (g *Gang) Take(r *wire.GangRequest) bool {
	if stop := r.GetStop(); stop != nil {
		return give(g.inbox.stop, time.Duration(stop.GraceMs)*time.Millisecond, g.inbox.ended)
	}
	if signal := r.GetSignal(); signal != nil {
		select {
		case g.inbox.signal <- unix.Signal(signal.Number):
		default: // several signals wait until the ranks have been started
		}
		return true
	}
	if stacks := r.GetStacks(); stacks != nil {
		select {
		case g.inbox.stacks <- stacks:
		default: // the controller does not wait for so many answers
		}
		return true
	}
	return give(g.inbox.requests, r, g.inbox.ended)
}

// give sends v on c. It returns false if ended is closed before v is received.
func give[T any](c chan<- T, v T, ended <-chan struct{}) bool {
	select {
	case c <- v:
		return true
	case <-ended:
		return false
	}
}
