package gang

import (
	"sync"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
)

// living counts the ranks that have not exited, and collects their exits.
type living struct {
	exits   chan *Rank
	watches sync.WaitGroup // counts the goroutines that send to exits

	mu      sync.Mutex
	ranks   int
	changed chan struct{} // wakes supervise when the number of ranks has changed without an exit
}

func newLiving(size int) living {
	return living{exits: make(chan *Rank, size), changed: make(chan struct{}, 1)}
}

func (l *living) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ranks
}

func (l *living) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ranks += n
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// watch reports the start of a rank's process. It sends the rank to supervise when the process has ended and all of its
// output is in its logs.
func (g *Gang) watch(r *Rank) {
	child := r.child.Load()
	g.Reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStarted, Rank: r.number, Host: g.Host, PID: child.PID})
	g.living.watches.Go(func() {
		<-child.Exited
		if child.Status != 0 {
			output.Drain(r.out, r.err)
		} else {
			g.wireup.Settle(r.number, g.logs.release)
		}
		g.living.exits <- r
	})
}
