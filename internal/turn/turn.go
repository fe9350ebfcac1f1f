// Package turn makes calls that cannot be cancelled, such as those of a file system that hangs. It makes them
// one at a time, and leaves at most one of them behind.
package turn

import (
	"context"
	"time"
)

// Turn lets one goroutine make such a call at a time.
type Turn chan struct{}

// New returns a Turn that nobody has.
func New() Turn { return make(Turn, 1) }

// Do returns what call returns, or the cause of ctx if ctx ends first. If call needs longer, its goroutine stays.
// There is at most one such goroutine for each Turn, because the next Do waits for its end. After the end of ctx,
// Do waits for slack, so that a call that notices the end can still return.
func Do[T any](ctx context.Context, turn Turn, slack time.Duration, call func() (T, error)) (T, error) {
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
	type answer struct {
		of  T
		err error
	}
	found := make(chan answer, 1)
	go func() {
		of, err := call()
		<-turn
		found <- answer{of, err}
	}()
	select {
	case a := <-found:
		return a.of, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-found:
		return a.of, a.err
	case <-time.After(slack):
		return *new(T), context.Cause(ctx)
	}
}
