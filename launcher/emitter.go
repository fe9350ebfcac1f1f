package launcher

import (
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/queue"
)

// emitter hands events to a function that may block, without delaying the gang.
type emitter struct{ queue *queue.Queue[job.Event] }

func newEmitter(emit func(job.Event)) *emitter { return &emitter{queue.New(emit)} }

// maxQueue bounds the events that wait. Progress and pulses beyond it are dropped; other
// events are not.
const maxQueue = 10_000

func (e *emitter) put(event job.Event) {
	if event.Kind != job.KindProgress && event.Kind != job.KindPulse || e.queue.Len() < maxQueue {
		e.queue.Put(event)
	}
}

// close waits until all events have been handed on.
func (e *emitter) close() { <-e.queue.Close() }
