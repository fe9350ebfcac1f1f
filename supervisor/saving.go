package supervisor

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// saveLook is the time between two looks for the checkpoint that ranks were asked for.
const saveLook = 500 * time.Millisecond

// gangContext returns the context of a gang. It ends with ctx, for the same cause, but not before
// the ranks have had time for a checkpoint, if the job can be asked for one. end ends it before
// that. release must be called when the gang has ended.
func (l *loop) gangContext(ctx context.Context) (gang context.Context, end context.CancelCauseFunc, release func()) {
	gang, end = context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-gang.Done():
			return
		case <-ctx.Done():
		}
		l.saveBefore(ctx, gang)
		end(context.Cause(ctx))
	}()
	return gang, end, func() { end(nil); <-done }
}

// saveBefore asks the ranks for a checkpoint, and waits until there is a new good one, until
// gang ends, or for the job's limit. ctx, that of the run, is done.
func (l *loop) saveBefore(ctx, gang context.Context) {
	if l.Signal == nil || l.spec.BeforeStop.Number() == 0 || !l.up() {
		return
	}
	var by Interrupted
	if errors.As(context.Cause(ctx), &by) && by.Now {
		return
	}
	limit := time.Duration(l.spec.BeforeStopWait)
	l.note("asking the ranks for a checkpoint (%s), and waiting for it for up to %s", l.spec.BeforeStop, l.spec.BeforeStopWait)
	before := l.newest(gang)
	began := time.Now()
	l.Signal(syscall.Signal(l.spec.BeforeStop.Number()))
	for time.Since(began) < limit && pause(gang, min(saveLook, limit-time.Since(began))) {
		if c := l.newest(gang); newer(before, c) {
			l.note("there is a new good checkpoint after %s: %s", job.Duration(time.Since(began).Round(100*time.Millisecond)), c.Path)
			return
		}
	}
	if gang.Err() == nil {
		l.note("no new good checkpoint was found within %s", limit)
	}
}

// newest returns the newest good checkpoint; nil if there is none, or none can be found.
func (l *loop) newest(ctx context.Context) *job.Checkpoint {
	if l.spec.CheckpointDir == "" {
		return nil
	}
	c, _, err := l.Checkpoints.Newest(ctx, l.spec.CheckpointDir, nil)
	if err != nil {
		return nil
	}
	return c
}

// up reports whether all ranks of the current attempt have been started and it is not being ended.
func (l *loop) up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.folder.Report().State == job.StateRunning
}
