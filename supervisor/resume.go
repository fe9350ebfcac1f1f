package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// lastLook bounds the look for a checkpoint once the run's context is done: it
// only tells the report what was saved, and the user is waiting.
const lastLook = 5 * time.Second

// resume is what is known of a run's checkpoints.
//
// A run that was not asked to resume starts afresh, and so do its restarts
// until it has written a checkpoint of its own: one that lay there before it
// began may be of another job.
type resume struct {
	foreign *job.Checkpoint // lay there before, and is not to be resumed from
	blind   time.Time       // nobody could look; what is older than this is foreign
	start   *job.Checkpoint // the first attempt's, when the job resumes
	best    *job.Checkpoint // the furthest ever seen: what progress is measured by
	newest  *job.Checkpoint // what the next attempt starts from
}

// own reports whether this run may resume from c.
func (r resume) own(c *job.Checkpoint) bool {
	f := r.foreign
	if f != nil && c.Path == f.Path && c.Step == f.Step && c.Time.Equal(f.Time) {
		return false
	}
	return !c.Time.Before(r.blind)
}

// saved reports whether the run has left a good checkpoint of its own.
func (r resume) saved() bool { return newer(r.start, r.best) }

// path returns what the next attempt starts from, empty for nothing.
func (r resume) path() string {
	if r.newest == nil {
		return ""
	}
	return r.newest.Path
}

// orResume is what else than its hint says can be done about a run that was ended from
// outside, where there is a checkpoint directory.
const orResume = ", or run with --resume to go on from the last checkpoint"

// lookFirst finds what lies in the checkpoint directory before the first
// attempt.
func (l *loop) lookFirst(ctx context.Context) {
	began := time.Now()
	c, notes, ok := l.look(ctx, nil)
	l.tell(notes)
	if ok && l.spec.CheckpointDir != "" {
		l.emit(job.Event{Kind: job.KindCheckpoint, Checkpoint: c}) // for a later controller
	}
	switch {
	case !ok && !l.spec.Resume:
		l.resume.blind = began
	case !l.spec.Resume:
		l.resume.foreign = c
	default:
		l.resume.start, l.resume.best, l.resume.newest = c, c, c
		if ok && c == nil {
			l.note("there is no good checkpoint in %q: the job starts from its beginning", l.spec.CheckpointDir)
		}
	}
}

// lookAgain finds what there is to resume from after those attempts, of which
// the last has just failed. Where nobody can look, the next attempt starts from
// what was last known to be good.
func (l *loop) lookAgain(ctx context.Context, number int, past []Past) {
	never, rather := avoided(past)
	c, notes, ok := l.look(ctx, slices.Concat(never, rather))
	if ok && c == nil && len(rather) > 0 {
		c, notes, ok = l.look(ctx, never)
	}
	l.tell(notes)
	if !ok {
		return
	}
	if c != nil && !l.resume.own(c) {
		c = nil
	}
	l.resume.newest = c
	if newer(l.resume.best, c) {
		l.resume.best = c
		l.emit(job.Event{Kind: job.KindCheckpoint, Attempt: number, Checkpoint: c})
	}
}

// look returns the newest good checkpoint but those in not, nil for none, notes
// for the user, and false when nobody could look.
func (l *loop) look(ctx context.Context, not []job.Checkpoint) (found *job.Checkpoint, notes []string, ok bool) {
	if l.spec.CheckpointDir == "" {
		return nil, nil, true
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastLook)
		defer cancel()
	}
	c, told, err := l.Checkpoints.Newest(ctx, l.spec.CheckpointDir, not)
	for _, n := range told {
		notes = append(notes, "checkpoints: "+n)
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("the checkpoints in %q could not be looked at: %v", l.spec.CheckpointDir, err))
		return nil, notes, false
	}
	return c, notes, true
}
