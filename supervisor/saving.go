package supervisor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/internal/turn"
	"github.com/gangrun/gangrun/supervisor/earlystop"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/retry"
)

const (
	// saveLook is the time between two looks for the checkpoint that ranks were asked for.
	saveLook = 500 * time.Millisecond
	// still is how long nothing of a step has changed when it counts as written: ranks do not end their parts at the
	// same time. stillFirst is the same if there is no earlier checkpoint that shows what belongs to one.
	still, stillFirst = 3 * time.Second, 5 * time.Second
)

// Asker asks the ranks of the running gang for a checkpoint, in the way that Spec.BeforeStop says.
type Asker interface {
	// Ask asks the ranks for a checkpoint.
	Ask(ctx context.Context) error
	// Withdraw removes what an earlier Ask has left for the ranks, such as a file. It is called before and
	// after each attempt.
	Withdraw(ctx context.Context) error
}

// gangEnd is how a gang comes to its end.
type gangEnd struct {
	// gang is the context of the launcher. wish ends when gangrun wants the gang to end. That is before gang
	// ends, if the ranks are asked for a checkpoint.
	gang, wish context.Context
	run        context.Context         // of the whole run
	decide     context.CancelCauseFunc // ends wish, and gang when the ranks have had time for a checkpoint
	now        context.CancelCauseFunc // ends gang at once
	number     int                     // of the attempt
	hosts      int                     // that have ranks
	release    func()                  // must be called when the gang has ended

	request atomic.Pointer[request] // nil if there was none
	failing atomic.Bool             // the gang is being ended because it has failed, or for what the guard has found

	mu    sync.Mutex
	asked bool                    // the ranks were asked for a checkpoint
	heard map[string]bool         // by host: a rank there handles the signal that asks
	skip  context.CancelCauseFunc // ends the wait for a checkpoint
	gone  map[int]bool            // ranks that had ended before
}

// endOf returns how the gang of an attempt of a run with the context ctx ends. The gang ends with ctx, for the same cause, but not
// before the ranks have had time for a checkpoint, if the job can be asked for one. If first is not nil, the gang was being ended
// for that cause before ctx has ended.
func (l *loop) endOf(ctx context.Context, number int, p job.Placement, first error) *gangEnd {
	g := &gangEnd{number: number, run: ctx, hosts: earlystop.Hosts(p)}
	g.gang, g.now = context.WithCancelCause(context.WithoutCancel(ctx))
	g.wish, g.decide = context.WithCancelCause(ctx)
	if first != nil {
		g.wish, g.decide = context.WithCancelCause(context.WithoutCancel(ctx))
		g.decide(first)
	}
	over := make(chan struct{})
	var acting sync.WaitGroup
	acting.Go(func() {
		select {
		case <-g.gang.Done():
			return
		case <-g.wish.Done():
		}
		l.saveBefore(g)
		g.now(context.Cause(g.wish))
	})
	acting.Go(func() { l.hear(g, over) })
	g.release = func() { g.now(nil); g.decide(nil); close(over); acting.Wait() }
	return g
}

// ending reports whether the gang was being ended already when the user ended the run.
func (g *gangEnd) ending() bool {
	var by order.Interrupted
	cause := context.Cause(g.wish)
	return g.failing.Load() || cause != nil && !errors.As(cause, &by)
}

// cause returns why gangrun ends the gang; nil if it does not.
func (g *gangEnd) cause() error {
	if g.gang.Err() != nil {
		return context.Cause(g.gang)
	}
	return context.Cause(g.wish)
}

// mayAnswer reports whether ranks are asked for a checkpoint before they are ended for a cause. A gang that
// hangs could not answer, and the weights of a model that has diverged are worth nothing: they could replace the last
// good checkpoint.
func mayAnswer(cause error) bool {
	var by order.Interrupted
	var hung Hung
	var early StoppedEarly
	switch {
	case errors.As(cause, &by):
		return !by.Now
	case errors.As(cause, &hung):
		return false
	case errors.As(cause, &early):
		return !earlystop.Spoils(early.Verdict.Kind)
	}
	return true
}

// saveBefore asks the ranks for a checkpoint, and waits until there is a new good one of which nothing changes any more,
// until the gang ends, or for the job's limit.
func (l *loop) saveBefore(g *gangEnd) {
	if l.Asker == nil || !l.spec.BeforeStop.Asks() || !mayAnswer(context.Cause(g.wish)) || !l.ask(g) {
		return
	}
	limit := time.Duration(l.spec.BeforeStopWait)
	l.emit(g.asking(l.spec))
	ctx, cancel := context.WithTimeout(g.gang, limit)
	defer cancel()
	ctx, skip := context.WithCancelCause(ctx)
	defer l.follow(ctx, g, skip)()
	began := time.Now()
	before, found, ok := l.present(ctx, min(lastLook, limit/4))
	var written *job.Checkpoint
	if ok {
		g.request.Store(&request{before: before})
		defer func() { g.request.Store(&request{before, time.Since(began), written}) }()
	}
	if err := l.Asker.Ask(ctx); err != nil && g.gang.Err() == nil {
		l.note("the ranks could not be asked for a checkpoint: %v", err)
		return
	}
	if written = l.awaited(ctx, before, found, limit, ok); written != nil {
		l.note("there is a new good checkpoint after %s: %s", job.Duration(time.Since(began).Round(100*time.Millisecond)), written.Path)
		return
	}
	<-ctx.Done() // what the ranks do cannot be seen, but they have the time for it
	var no noWait
	switch {
	case g.gang.Err() != nil:
	case errors.As(context.Cause(ctx), &no):
		l.note("the gang is ended without waiting for a checkpoint: %v", no)
	default:
		l.note("no new good checkpoint was found within %s", limit)
	}
}

// present returns the newest good checkpoint, and what may be a checkpoint, before the ranks are asked. Because the ranks
// wait, each of the two looks may take at most brief. If the file system answers, but verifying the newest checkpoint takes
// longer, present returns the newest one that is known to be good, or that this attempt may have written. ok is false if
// the file system does not answer.
func (l *loop) present(ctx context.Context, brief time.Duration) (newest *job.Checkpoint, found []saves.Found, ok bool) {
	looking, cancel := context.WithTimeout(ctx, brief)
	newest, verified := l.newest(looking)
	cancel()
	looking, cancel = context.WithTimeout(ctx, brief)
	defer cancel()
	found, ok = l.scan(looking)
	if verified {
		return newest, found, ok
	}
	if newest = l.resume.best; retry.Newer(newest, l.lastSave()) {
		newest = l.lastSave()
	}
	began := l.started()
	for _, f := range found {
		if c := (&job.Checkpoint{Path: f.Path, Step: f.Step, Bytes: f.Bytes, Time: f.Time}); f.Time.After(began) && retry.Newer(newest, c) {
			newest = c
		}
	}
	return newest, found, ok
}

// started returns when the current attempt began.
func (l *loop) started() (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.folder.Report().Last().Started; s != nil {
		at = *s
	}
	return at
}

// awaited returns a good checkpoint that has been written since before was the newest and these were found, when nothing
// of its step, or of an earlier one since before, changes any more: ranks may go on to save. It is nil if there is none until ctx
// ends. ok is false if the file system does not answer.
func (l *loop) awaited(ctx context.Context, before *job.Checkpoint, found []saves.Found, limit time.Duration, ok bool) *job.Checkpoint {
	rest := still
	if before == nil {
		rest = stillFirst
	}
	follower := saves.New(time.Now(), found)
	for ok && pause(ctx, saveLook) {
		if found, ok = l.scan(ctx); !ok {
			break
		}
		now := time.Now()
		follower.Look(saves.Look{Now: now, Noticed: now, Found: found, Free: -1})
		key, parts := follower.Due(now, min(rest, limit/2))
		if key == "" {
			continue
		}
		var c *job.Checkpoint
		if c, ok = l.newest(ctx); ok && fresh(before, c) && slices.ContainsFunc(parts, func(p saves.Found) bool { return p.Path == c.Path || p.Step >= 0 && p.Step < c.Step }) {
			return c
		}
		follower.Verified(now, key, parts, []saves.Checked{{Path: parts[0].Path, Why: "it is not the newest good one"}})
	}
	return nil
}

// scan returns what may be a checkpoint. It is not ok if ctx ended before the file system has answered.
func (l *loop) scan(ctx context.Context) (found []saves.Found, ok bool) {
	if l.spec.CheckpointDir == "" {
		return nil, true
	}
	found, _ = turn.Do(ctx, l.resume.turn, searchSlack, func() ([]saves.Found, error) { return l.Checkpoints.Scan(l.spec.CheckpointDir) })
	return found, ctx.Err() == nil
}

// ask reports whether all ranks of the gang have been started and it is not being ended. Ranks that end from then
// on do so because they were asked.
func (l *loop) ask(g *gangEnd) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.folder.Report()
	if r.State != job.StateRunning {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked, g.gone = true, map[int]bool{}
	for _, x := range r.Last().Exits {
		g.gone[x.Rank] = true
	}
	return true
}

// complete reports whether the current attempt has made the last of its steps.
func (l *loop) complete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.folder.Report().Last()
	return a != nil && a.Total > 0 && a.Step >= a.Total-1
}

// fresh reports whether a checkpoint was written after another one.
func fresh(before, c *job.Checkpoint) bool {
	return retry.Newer(before, c) || before != nil && c != nil && c.Path == before.Path && c.Time.After(before.Time)
}

// newest returns the newest good checkpoint; nil if there is none, or none can be found. It is not ok if ctx ended
// before the file system has answered.
func (l *loop) newest(ctx context.Context) (c *job.Checkpoint, ok bool) {
	if l.spec.CheckpointDir == "" {
		return nil, true
	}
	c, _, err := l.search(ctx, nil, l.Checkpoints.Newest)
	if err != nil {
		c = nil
	}
	return c, ctx.Err() == nil
}

// withdraw removes what the ranks of a gang that has ended were asked with.
func (l *loop) withdraw(ctx context.Context) {
	if l.Asker == nil || !l.spec.BeforeStop.Asks() {
		return
	}
	if err := l.Asker.Withdraw(ctx); err != nil {
		l.note("the request for a checkpoint could not be withdrawn: %v", err)
	}
}
