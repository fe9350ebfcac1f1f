package resumable

import (
	"errors"
	"io"
	"sync"
)

var errCut = errors.New("cut by the test")

// wire is a carrier with two ends. Like a socket, it accepts more data than was read. Data that was not read before it
// is cut is lost.
type wire struct {
	mu     sync.Mutex
	change sync.Cond
	way    [2]way
	over   error
	budget int  // number of bytes until the fault; negative means no fault
	deaf   bool // the fault is that data disappears; otherwise, the fault is that the wire is cut
	struck chan struct{}
}

type way struct {
	queue  []byte
	closed bool          // whether the end that writes in this direction was closed
	spoken chan struct{} // is closed at the first write
}

// wireBytes is the number of unread bytes that a wire accepts before Write blocks.
const wireBytes = 32 << 10

// newWire returns a wire with a fault after budget bytes, counted in both directions together. The wire is then cut
// or, if deaf is true, loses everything that is written later.
func newWire(budget int, deaf bool) (*wire, io.ReadWriteCloser, io.ReadWriteCloser) {
	w := &wire{budget: budget, deaf: deaf, struck: make(chan struct{})}
	for i := range w.way {
		w.way[i].spoken = make(chan struct{})
	}
	w.change.L = &w.mu
	return w, &wireEnd{w, 0}, &wireEnd{w, 1}
}

// cut cuts the wire now.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		w.over = errCut
	}
	w.change.Broadcast()
}

// silent reports whether the wire already loses data. w.mu is held.
func (w *wire) silent() bool { return w.deaf && w.budget == 0 }

// spend uses up to n bytes of the budget, and returns how many bytes can still pass. w.mu is held.
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
	from int // the direction in which this end writes
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
