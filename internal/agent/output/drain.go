package output

import "time"

// Drain waits until everything that a dead rank had written is in the logs of its streams,
// for at most drainLimit: until the streams have ended or, where a child of the rank holds
// them open, until they have been quiet for a moment.
func Drain(streams ...*Stream) {
	step := time.NewTicker(drainLimit / drainSteps)
	defer step.Stop()
	steps := 0
	for _, s := range streams {
		for {
			change := s.Grew.Changed()
			before, closed := s.state()
			if closed {
				break
			}
			unread := s.unread()
			select {
			case <-change:
				continue
			case <-time.After(quiet):
			case <-step.C:
				if steps++; steps == drainSteps {
					return
				}
				continue
			}
			if after, _ := s.state(); !unread && after == before {
				break
			}
		}
	}
}

// drainLimit bounds the wait for what a dead rank had written.
const drainLimit = 500 * time.Millisecond

// drainSteps are the parts of drainLimit: a process that is suspended meanwhile loses at
// most one.
const drainSteps = 5

// quiet is how long a stream must have nothing unread to count as drained.
const quiet = 20 * time.Millisecond
