package output

import (
	"time"

	"github.com/gangrun/gangrun/internal/runclock"
)

// drainLimit bounds the wait for what a dead rank had written.
const drainLimit = 500 * time.Millisecond

// quiet is how long a stream must have nothing unread, and the log all that was read, to count as drained.
const quiet = 20 * time.Millisecond

// Drain waits until the logs have everything that a dead rank had written to its streams. It waits until the
// streams have ended or, if a child of the rank keeps them open, until they have been quiet for a moment. The
// wait has a time limit.
func Drain(streams ...*Stream) {
	limit := runclock.NewTimer(drainLimit)
	defer limit.Stop()
	for _, s := range streams {
		for {
			change := s.Grew.Changed()
			before, closed := s.state()
			if closed {
				break
			}
			unread := s.unread() || s.busy.Load() // in this order: the pump is busy before it reads
			select {
			case <-change:
				continue
			case <-time.After(quiet):
			case <-limit.C:
				return
			}
			if after, _ := s.state(); !unread && after == before {
				break
			}
		}
	}
}
