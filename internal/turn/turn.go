// Package turn makes calls that cannot be cancelled, such as those of a file system that hangs. If the
// caller gives up, the call goes on in a goroutine. The calls with one Turn are made one at a time, so that at most one
// such goroutine remains for each Turn.
package turn

import (
	"context"
	"time"
)

// Turn limits calls of Do: of all calls of Do with the same Turn, only one runs its function at a time.
type Turn chan struct{}

// New returns a Turn that no call of Do uses.
func New() Turn { return make(Turn, 1) }

// Do runs call in a goroutine, and returns what call returns. If ctx ends first, Do returns the cause of ctx, and the
// goroutine stays until call returns. There is at most one such goroutine for each Turn, because the next Do waits for
// its end. If ctx ends while call runs, Do still waits for up to the duration slack, so that a call that notices the
// end of ctx can return.
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
