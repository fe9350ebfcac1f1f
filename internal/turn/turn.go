// Package turn makes calls that nobody can end, such as those of a file system that does not answer, one at a time.
package turn

import (
	"context"
	"time"
)

// Turn lets one goroutine make such a call at a time.
type Turn chan struct{}

// New returns a Turn that nobody has.
func New() Turn { return make(Turn, 1) }

// Do returns what call returns, or the cause of ctx if it ends before. If call needs longer, its goroutine is left, but it is at
// most one for each Turn: the next Do waits for its end. A call that itself notes the end of ctx has slack for that.
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
