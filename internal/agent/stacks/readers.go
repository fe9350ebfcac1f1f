package stacks

import (
	"context"
	"sync"
)

// readers are the goroutines that read files of /proc. Some of these files can hold a reader up for as
// long as a process hangs in the kernel, such as in the execution of a program on a file server that
// does not answer. No more than one reader waits for the processes of one rank.
type readers struct {
	mu   sync.Mutex
	busy map[int]chan struct{} // by the PID of the rank; closed when the reader is done
}

// limited returns what f returns. ok is false if f has not returned when ctx ends, or if a reader
// for the same pid is still held up. f goes on then, and must share nothing with the caller.
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

// wait waits for all readers, at most until ctx ends.
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
