// Package runclock measures the time in which this process really ran. It does not count time
// in which the process was stopped or got no processor, or in which its machine was suspended.
// So a pause of this process does not look like the silence of another one.
package runclock

import (
	"context"
	"sync"
	"time"
)

// A timer counts its time in steps. Of a time in which the process did not run, it counts
// at most one step.
const (
	stepsPerTimer = 20
	leastStep     = time.Millisecond
	mostStep      = 100 * time.Millisecond
)

// Timer fires once, after the process has run for a duration.
type Timer struct {
	C <-chan struct{} // receives one value when the timer fires

	fired chan struct{}

	mu    sync.Mutex
	timer *time.Timer
	turn  int // of Reset; steps of an earlier turn do not count
	step  time.Duration
	left  time.Duration
}

// NewTimer returns a timer that fires after the process has run for d.
func NewTimer(d time.Duration) *Timer {
	fired := make(chan struct{}, 1)
	t := &Timer{C: fired, fired: fired}
	t.Reset(d)
	return t
}

// Reset makes the timer fire after d. If C holds a value, Reset removes it.
func (t *Timer) Reset(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	t.left, t.step = d, min(max(d/stepsPerTimer, leastStep), mostStep)
	t.next()
}

// Stop stops the timer. After that, C receives nothing.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
}

func (t *Timer) stop() {
	t.turn++
	if t.timer != nil {
		t.timer.Stop()
	}
	select {
	case <-t.fired:
	default:
	}
}

func (t *Timer) next() {
	turn, step := t.turn, max(0, min(t.step, t.left))
	t.timer = time.AfterFunc(step, func() { t.count(turn, step) })
}

// count counts one step, whatever time has really passed.
func (t *Timer) count(turn int, step time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != turn {
		return
	}
	if t.left -= step; t.left > 0 {
		t.next()
		return
	}
	t.fired <- struct{}{} // has room: stop has emptied it
}

// WithTimeoutCause returns a copy of ctx that is cancelled, with the given cause, after the
// process has run for d. The Err of the copy is then context.Canceled. The returned CancelFunc stops
// the timer.
func WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := NewTimer(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-t.C:
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		t.Stop()
		<-done
	}
}
