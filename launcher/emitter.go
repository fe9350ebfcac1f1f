package launcher

import (
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/queue"
)

// emitter passes events to a function. That function may block, but does not delay the gang.
type emitter struct{ queue *queue.Queue[job.Event] }

func newEmitter(emit func(job.Event)) *emitter { return &emitter{queue.New(emit)} }

// maxQueue limits the number of waiting events. If more events wait, the emitter drops events of progress and pulses.
// It drops no other events.
const maxQueue = 10_000

func (e *emitter) put(event job.Event) {
	if event.Kind != job.KindProgress && event.Kind != job.KindPulse || e.queue.Len() < maxQueue {
		e.queue.Put(event)
	}
}

// close waits until all events have been passed on.
func (e *emitter) close() { <-e.queue.Close() }
