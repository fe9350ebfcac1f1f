package launcher

import (
	"context"
	"errors"
	"time"
)

// forsakeAfter is the silence of an agent that is waited for no more where that
// may be: two of its beats.
const forsakeAfter = 2 * time.Second

// errForsaken is why a silent agent is waited for no more.
var errForsaken = errors.New("nobody has waited for it")

// leave ends an agent within limit. Once forsaken is closed a silent one is waited
// for no more. Where ctx ends before, the agent goes on ending, and has to be left
// again: that waits for the same end.
func (a *remote) leave(ctx context.Context, limit time.Duration, forsaken <-chan struct{}) error {
	a.ending.once.Do(func() {
		var ending context.Context
		ending, a.ending.abort = context.WithCancelCause(context.Background())
		a.ending.over = make(chan struct{})
		go func() { // the last caller of leave waits for it
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
		case <-forsaken:
			forsaken, hurried = nil, true
		case <-look.C:
		}
		if hurried && a.silence() >= forsakeAfter {
			a.ending.abort(errForsaken)
		}
	}
}

// end closes the connection and waits until the agent is gone.
func (a *remote) end(ctx context.Context) error {
	close(a.contact.stop)
	a.contact.watching.Wait()
	_ = a.grpc.Close()
	return a.link.End(ctx)
}
