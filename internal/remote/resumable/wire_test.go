package resumable

import (
	"errors"
	"io"
	"sync"
)

var errCut = errors.New("cut by the test")

// wire is a carrier whose ends are given to two sides. As a socket does, it
// takes more than has been read; what has not been read when it is cut is lost.
type wire struct {
	mu     sync.Mutex
	change sync.Cond
	way    [2]way
	over   error
	budget int  // bytes until the fault; negative is no fault
	deaf   bool // the fault is that the bytes vanish, not that the wire is cut
	struck chan struct{}
}

type way struct {
	queue  []byte
	closed bool          // the end that writes here was closed
	spoken chan struct{} // closed when it first writes
}

// wireBytes is what a wire takes before a Write blocks.
const wireBytes = 32 << 10

// newWire returns a wire that is struck after budget bytes of both ways
// together: cut, or, where deaf, swallowing all that is written from then on.
func newWire(budget int, deaf bool) (*wire, io.ReadWriteCloser, io.ReadWriteCloser) {
	w := &wire{budget: budget, deaf: deaf, struck: make(chan struct{})}
	for i := range w.way {
		w.way[i].spoken = make(chan struct{})
	}
	w.change.L = &w.mu
	return w, &wireEnd{w, 0}, &wireEnd{w, 1}
}

// cut breaks the wire now.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		w.over = errCut
	}
	w.change.Broadcast()
}

// silent is whether the wire is deaf already. w.mu is held.
func (w *wire) silent() bool { return w.deaf && w.budget == 0 }

// spend takes up to n bytes of the budget and returns how many still pass.
// w.mu is held.
func (w *wire) spend(n int) int {
	if w.budget < 0 {
		return n
	}
	n = min(n, w.budget)
	if w.budget -= n; w.budget == 0 {
		select {
		case <-w.struck:
		default:
			close(w.struck)
		}
		if !w.deaf {
			w.over = errCut
		}
		w.change.Broadcast()
	}
	return n
}

type wireEnd struct {
	*wire
	from int // the way that this end writes to
}

func (e *wireEnd) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := &e.way[1-e.from]
	for {
		switch {
		case e.way[e.from].closed:
			return 0, io.ErrClosedPipe
		case e.over != nil:
			return 0, e.over
		case len(q.queue) > 0:
			n := copy(p, q.queue)
			q.queue = q.queue[n:]
			e.change.Broadcast()
			return n, nil
		case q.closed && !e.silent():
			return 0, io.EOF
		}
		e.change.Wait()
	}
}

func (e *wireEnd) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := &e.way[e.from]
	select {
	case <-q.spoken:
	default:
		close(q.spoken)
	}
	done := 0
	for {
		switch {
		case q.closed:
			return done, io.ErrClosedPipe
		case e.over != nil:
			return done, e.over
		case e.silent():
			return len(p), nil
		case done == len(p):
			return done, nil
		case e.way[1-e.from].closed:
			return done, io.ErrClosedPipe
		}
		if n := e.spend(min(len(p)-done, wireBytes-len(q.queue))); n > 0 {
			q.queue = append(q.queue, p[done:done+n]...)
			done += n
			e.change.Broadcast()
			continue
		}
		if e.over == nil && !e.silent() {
			e.change.Wait()
		}
	}
}

func (e *wireEnd) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.way[e.from].closed = true
	e.change.Broadcast()
	return nil
}
