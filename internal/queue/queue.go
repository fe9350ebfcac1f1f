// Package queue passes values to a function, in order and one at a time. The function may
// block. Callers that add values do not wait for it.
package queue

import "sync"

// Queue is an unbounded queue with one consumer. Its methods may be called at the same
// time.
type Queue[T any] struct {
	take func(T)
	done chan struct{} // closed when the consumer has ended

	mu      sync.Mutex
	arrived *sync.Cond
	waiting []T
	closed  bool
}

// New starts the consumer, which calls take for each value. The caller must Close it.
func New[T any](take func(T)) *Queue[T] {
	q := &Queue[T]{take: take, done: make(chan struct{})}
	q.arrived = sync.NewCond(&q.mu)
	go q.consume()
	return q
}

// Put appends a value. It does not wait for the consumer.
func (q *Queue[T]) Put(v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, v)
	q.arrived.Signal()
}

// Len returns the number of values that the consumer has not fetched yet.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

func (q *Queue[T]) consume() {
	defer close(q.done)
	for {
		q.mu.Lock()
		for len(q.waiting) == 0 && !q.closed {
			q.arrived.Wait()
		}
		values := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		if len(values) == 0 {
			return
		}
		for _, v := range values {
			q.take(v)
		}
	}
}

// Close tells the consumer to end after the last value and returns a channel that is
// closed when it has ended. Close may be called again.
func (q *Queue[T]) Close() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.arrived.Signal()
	return q.done
}
