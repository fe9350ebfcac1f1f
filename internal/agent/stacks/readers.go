package stacks

import (
	"context"
	"sync"
)

// readers runs goroutines that read files of /proc. The kernel may block a reader of such a file while a
// process hangs, for example while it executes a program on a file server that does not answer. At most one
// reader at a time waits for the processes of one rank.
type readers struct {
	mu   sync.Mutex
	busy map[int]chan struct{} // by the PID of the rank; the reader closes the channel when it has finished
}

// limited returns the result of f. ok is false if f has not returned when ctx ends, or if an earlier f for
// the same pid has not returned yet. In the first case, f goes on running, so it must share no memory with
// the caller.
func limited[T any](ctx context.Context, r *readers, pid int, f func() T) (result T, ok bool) {
	r.mu.Lock()
	if _, held := r.busy[pid]; held {
		r.mu.Unlock()
		return result, false
	}
	if r.busy == nil {
		r.busy = map[int]chan struct{}{}
	}
	done := make(chan struct{})
	r.busy[pid] = done
	r.mu.Unlock()
	got := make(chan T, 1)
	go func() {
		got <- f()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, pid)
		close(done)
	}()
	select {
	case <-done:
		return <-got, true
	case <-ctx.Done():
		return result, false
	}
}

// wait waits for all readers to finish, or for the end of ctx.
func (r *readers) wait(ctx context.Context) {
	r.mu.Lock()
	var all []chan struct{}
	for _, done := range r.busy {
		all = append(all, done)
	}
	r.mu.Unlock()
	for _, done := range all {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}
