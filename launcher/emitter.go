package launcher

import (
	"sync"

	"github.com/gangrun/gangrun/internal/job"
)

// emitter hands events on, one at a time and in order, so that whoever takes
// them may block without holding up the gang.
type emitter struct {
	emit func(job.Event)
	wg   sync.WaitGroup

	mu     sync.Mutex
	more   *sync.Cond
	queue  []job.Event
	closed bool
}

func newEmitter(emit func(job.Event)) *emitter {
	e := &emitter{emit: emit}
	e.more = sync.NewCond(&e.mu)
	e.wg.Go(e.loop)
	return e
}

// maxQueue bounds the events that wait; progress beyond it is dropped, nothing
// else is.
const maxQueue = 10_000

func (e *emitter) put(event job.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if event.Kind != job.KindProgress || len(e.queue) < maxQueue {
		e.queue = append(e.queue, event)
		e.more.Signal()
	}
}

func (e *emitter) loop() {
	for {
		e.mu.Lock()
		for len(e.queue) == 0 && !e.closed {
			e.more.Wait()
		}
		events := e.queue
		e.queue = nil
		e.mu.Unlock()
		if len(events) == 0 {
			return
		}
		for _, event := range events {
			e.emit(event)
		}
	}
}

// close waits until everything has been handed on.
func (e *emitter) close() {
	e.mu.Lock()
	e.closed = true
	e.more.Signal()
	e.mu.Unlock()
	e.wg.Wait()
}
