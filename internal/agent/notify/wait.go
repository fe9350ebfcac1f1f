package notify

import (
	"time"

	"github.com/gangrun/gangrun/internal/runclock"
)

// Wait waits until done is closed, for at most limit. Time in which this process does not run, for instance
// because it is stopped, does not count. Wait reports whether done is closed.
func Wait(done <-chan struct{}, limit time.Duration) bool {
	timer := runclock.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return Closed(done)
	}
}

// Closed reports whether c is closed. Nothing may be sent on c.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
