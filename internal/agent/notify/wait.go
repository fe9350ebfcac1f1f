package notify

import "time"

// steps are the parts of a limit: a process that is suspended meanwhile loses at most one.
const steps = 25

// Wait waits for done to be closed, at most for limit in which this process runs. It
// returns whether done is closed.
func Wait(done <-chan struct{}, limit time.Duration) bool {
	step := time.NewTicker(limit / steps)
	defer step.Stop()
	for range steps {
		select {
		case <-done:
			return true
		case <-step.C:
		}
	}
	return Closed(done)
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
