package agents

import (
	"context"
	"errors"
	"sync"
	"time"
)

// AbandonAfter is a limit that applies if the user is in a hurry: gangrun then stops waiting for an agent that has
// been silent for this time. In this time, an agent normally sends two heartbeats.
const AbandonAfter = 2 * time.Second

// ErrNotAwaited means that gangrun did not wait for a silent agent, because the user is in a
// hurry.
var ErrNotAwaited = errors.New("nobody has waited for it")

// leave ends an agent. After limit, leave gives up the wait. Once hurry is closed, it also gives up the wait if the
// agent is silent. If ctx ends first, leave returns, but the agent continues to end. The caller must then call leave
// again. That call waits for the same end.
func (a *Agent) leave(ctx context.Context, limit time.Duration, hurry <-chan struct{}) error {
	a.ending.once.Do(func() {
		var ending context.Context
		ending, a.ending.abort = context.WithCancelCause(context.Background())
		a.ending.over = make(chan struct{})
		go func() { // the last call of leave waits for this goroutine
			defer close(a.ending.over)
			a.ending.err = a.end(ending)
		}()
	})
	late := time.NewTimer(limit)
	defer late.Stop()
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	hurried := false
	for {
		select {
		case <-a.ending.over:
			a.ending.abort(nil)
			return a.ending.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			a.ending.abort(context.DeadlineExceeded)
		case <-hurry:
			hurry, hurried = nil, true
		case <-look.C:
		}
		if hurried && a.Silence() >= AbandonAfter {
			a.ending.abort(ErrNotAwaited)
		}
	}
}

// end closes the connection and waits until the agent is gone.
func (a *Agent) end(ctx context.Context) error {
	close(a.contact.stop)
	a.contact.watching.Wait()
	_ = a.grpc.Close()
	return a.Link.End(ctx)
}

// errHurried is why an Unhurried context has ended: the user is in a hurry.
var errHurried = errors.New("told to end at once")

// Unhurried returns a context that ends with ctx, when hurry is closed, or when stop is called.
func Unhurried(ctx context.Context, hurry <-chan struct{}) (unhurried context.Context, stop func()) {
	unhurried, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-hurry:
			cancel(errHurried)
		case <-unhurried.Done():
		}
	})
	return unhurried, func() { cancel(nil); waiting.Wait() }
}
