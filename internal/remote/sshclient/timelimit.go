package sshclient

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errTimeLimit is the cause of a context that a timeLimit has ended.
var errTimeLimit = errors.New("no answer in time")

// timeLimit limits the set-up of one connection. Its context ends after the limit, or earlier with its parent. While
// gangrun waits for a person, personLimit applies instead of the limit.
type timeLimit struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	waiting int
}

func newTimeLimit(ctx context.Context, limit time.Duration) *timeLimit {
	l := &timeLimit{limit: limit}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(limit, func() { l.cancel(errTimeLimit) })
	return l
}

// extend sets the limit to d from now on, because a person is asked for something. resume ends that.
func (l *timeLimit) extend(d time.Duration) (resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++
	l.timer.Reset(d)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waiting--; l.waiting == 0 {
			l.timer.Reset(l.limit)
		}
	}
}

// end ends the context.
func (l *timeLimit) end() {
	l.mu.Lock()
	l.timer.Stop()
	l.mu.Unlock()
	l.cancel(context.Canceled)
}

// exceeded reports whether the limit has passed.
func (l *timeLimit) exceeded() bool { return context.Cause(l.ctx) == errTimeLimit }
