package ssh

import (
	"context"
	"errors"
	"sync"
	"time"
)

var errPatience = errors.New("no answer in time")

// A patience bounds the setting up of one connection: its context ends when the
// host has been silent for the limit, or earlier with its parent. While a
// person is asked for something the person's time counts instead.
type patience struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	waiting int
}

func newPatience(ctx context.Context, limit time.Duration) *patience {
	p := &patience{limit: limit}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(limit, func() { p.cancel(errPatience) })
	return p
}

// wait allows d for a person; the function returned goes back to the limit.
func (p *patience) wait(d time.Duration) (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	p.timer.Reset(d)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			p.timer.Reset(p.limit)
		}
	}
}

// end frees what p holds.
func (p *patience) end() {
	p.mu.Lock()
	p.timer.Stop()
	p.mu.Unlock()
	p.cancel(context.Canceled)
}

// out says whether the limit passed.
func (p *patience) out() bool { return context.Cause(p.ctx) == errPatience }
