package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/turn"
	"github.com/gangrun/gangrun/supervisor/earlystop"
	"github.com/gangrun/gangrun/supervisor/retry"
)

// lastLook limits the search for a checkpoint after the run's context has ended. The user, or the batch system, then
// waits for the end of the run.
const lastLook = 5 * time.Second

// worthLook limits the search for the checkpoint of a run that was stopped early because its model is good
// enough. The search reads all numbers of the checkpoint. As for checkpoints that a running gang writes, 10
// minutes are enough for some hundred GB.
const worthLook = 10 * time.Minute

// resume has what gangrun knows of the checkpoints of a run.
//
// A run without --resume starts from the beginning of the job. Its restarts also start from the beginning until
// the run has written a checkpoint: a checkpoint that was there before may be another job's.
type resume struct {
	foreign *job.Checkpoint // existed before the run; the run must not resume from it
	blind   time.Time       // set if the first search failed: older checkpoints are foreign
	start   *job.Checkpoint // from which the first attempt starts, if the job resumes
	best    *job.Checkpoint // the furthest checkpoint seen so far, by which progress is measured
	newest  *job.Checkpoint // from which the next attempt starts
	broken  bool            // there are newer checkpoints that are not good
	request *request        // of the last attempt; nil if its ranks were not asked for a checkpoint
	turn    turn.Turn       // serializes the searches in the file system
}

// own reports whether this run may resume from c.
func (r resume) own(c *job.Checkpoint) bool {
	f := r.foreign
	if f != nil && c.Path == f.Path && c.Step == f.Step && c.Time.Equal(f.Time) {
		return false
	}
	return !c.Time.Before(r.blind)
}

// restore records a checkpoint from the journal. resumes is true if the job resumes.
func (r *resume) restore(e job.Event, resumes bool) {
	switch {
	case e.Attempt > 0:
		r.best, r.newest = e.Checkpoint, e.Checkpoint
	case resumes:
		r.start, r.best, r.newest = e.Checkpoint, e.Checkpoint, e.Checkpoint
	default:
		r.foreign = e.Checkpoint
	}
}

// saved reports whether the run has left a good checkpoint of its own.
func (r resume) saved() bool { return retry.Newer(r.start, r.best) }

// path returns the checkpoint from which the next attempt starts, or "".
func (r resume) path() string {
	if r.newest == nil {
		return ""
	}
	return r.newest.Path
}

// orResume is added to the hint of a run that has a checkpoint directory and was ended from outside.
const orResume = ", or run with --resume to go on from the last checkpoint"

// resumeHint returns the hint for a run that has a checkpoint directory and was ended from outside. c is the
// cause.
func (l *loop) resumeHint(c job.Cause) string {
	switch known := retry.CategoryOf(c) == job.Cancelled || retry.CategoryOf(c) == job.Preempted; {
	case !known:
		return c.Hint + orResume
	case l.spec.Resume:
		return "run it again: it goes on from its newest good checkpoint, if there is one"
	}
	return "run it again with --resume to go on from its newest good checkpoint, if there is one"
}

// lookFirst finds the newest good checkpoint before the first attempt.
func (l *loop) lookFirst(ctx context.Context) {
	began := time.Now()
	c, notes, ok := l.lookAvoiding(ctx, l.earlier)
	if ok && c == nil && len(l.earlier) > 0 {
		c, notes, ok = l.look(ctx, nil, l.Checkpoints.Newest) // rather than start a job that resumes from its beginning
	}
	l.notes(notes)
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

// lookAgain finds the checkpoint for the next attempt. The last of the past attempts has just failed. If the
// directory cannot be read, the next attempt starts from the last checkpoint that was known to be good.
func (l *loop) lookAgain(ctx context.Context, number int, past []retry.Past) {
	_, worth := earlystop.By(past[len(past)-1].Cause)
	search := ctx
	if worth {
		var cancel context.CancelFunc
		search, cancel = context.WithTimeoutCause(ctx, worthLook, fmt.Errorf("it takes longer than %s", job.Duration(worthLook)))
		defer cancel()
	}
	c, notes, ok := l.lookAvoiding(search, past)
	if r := l.resume.request; !ok && r != nil && r.found != nil {
		c, ok = r.found, true
		why := "it was good when the ranks had written it"
		if worth {
			why = "it is complete, but not all of its numbers were looked at"
		}
		notes = append(notes, fmt.Sprintf("%s counts as good: %s", c.Path, why))
	}
	l.notes(notes)
	if !ok {
		// If there is no time to verify the checkpoints, the word of an agent counts. An agent does not look at the numbers.
		if saved := l.lastSave(); ctx.Err() != nil && !mustBeFinite(past) && retry.Newer(l.resume.best, saved) {
			l.resume.best = saved
			l.emit(job.Event{Kind: job.KindCheckpoint, Attempt: number, Checkpoint: saved})
		}
		return
	}
	l.resume.broken = len(notes) > 0
	if c != nil && !l.resume.own(c) {
		c = nil
	}
	l.resume.newest = c
	if retry.Newer(l.resume.best, c) {
		l.resume.best = c
		l.emit(job.Event{Kind: job.KindCheckpoint, Attempt: number, Checkpoint: c})
	}
}

// lastSave returns the newest good checkpoint that agents have seen the current attempt write; nil if there is none.
func (l *loop) lastSave() *job.Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.folder.Report().Last().Saves.Last(); last != nil {
		return &last.Checkpoint
	}
	return nil
}

// lookAvoiding is look without the checkpoints that past attempts could not load.
func (l *loop) lookAvoiding(ctx context.Context, past []retry.Past) (found *job.Checkpoint, notes []string, ok bool) {
	barred, lastResort := retry.Avoided(past)
	find := l.find(past)
	found, notes, ok = l.look(ctx, slices.Concat(barred, lastResort), find)
	if ok && found == nil && len(lastResort) > 0 {
		return l.look(ctx, barred, find)
	}
	return found, notes, ok
}

// find is the type of functions that search for the newest good checkpoint.
type find func(ctx context.Context, dir string, avoided []job.Checkpoint) (found *job.Checkpoint, notes []string, err error)

// find returns the function with which to search after the past attempts. If one of them has diverged, or was
// stopped early because the model is good enough, all numbers of a good checkpoint must be finite.
func (l *loop) find(past []retry.Past) find {
	switch {
	case l.Checkpoints == nil:
		return nil
	case mustBeFinite(past):
		return l.Checkpoints.NewestFinite
	}
	return l.Checkpoints.Newest
}

// mustBeFinite reports whether all numbers of a good checkpoint must be finite after the past attempts.
func mustBeFinite(past []retry.Past) bool {
	return slices.ContainsFunc(past, func(p retry.Past) bool {
		_, worth := earlystop.By(p.Cause)
		return worth || retry.CategoryOf(p.Cause) == job.ModelDiverged
	})
}

// look returns the newest good checkpoint that is not in not, or nil, with notes for the user. ok
// is false if the directory could not be read.
func (l *loop) look(ctx context.Context, not []job.Checkpoint, find find) (found *job.Checkpoint, notes []string, ok bool) {
	if l.spec.CheckpointDir == "" {
		return nil, nil, true
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastLook)
		defer cancel()
	}
	c, texts, err := l.search(ctx, not, find)
	for _, text := range texts {
		notes = append(notes, "checkpoints: "+text)
	}
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
		notes = append(notes, fmt.Sprintf("the checkpoints in %q could not be looked at: %v", l.spec.CheckpointDir, err))
		return nil, notes, false
	}
	return c, notes, true
}

// search looks for the newest good checkpoint that is not in not, until ctx ends.
func (l *loop) search(ctx context.Context, not []job.Checkpoint, find find) (*job.Checkpoint, []string, error) {
	type answer struct {
		c     *job.Checkpoint
		notes []string
	}
	a, err := turn.Do(ctx, l.resume.turn, searchSlack, func() (a answer, err error) {
		a.c, a.notes, err = find(ctx, l.spec.CheckpointDir, not)
		return a, err
	})
	return a.c, a.notes, err
}

// searchSlack is how long a search may take to return after its context has ended.
const searchSlack = 100 * time.Millisecond
