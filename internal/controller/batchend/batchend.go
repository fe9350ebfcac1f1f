// Package batchend watches the batch job that gangrun runs in. It ends the run before the time
// limit of the job. If the batch system ends the job, it finds out why.
package batchend

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/slurmjob"
	"github.com/gangrun/gangrun/supervisor/order"
)

// Job is the Slurm job that this process is in.
type Job struct {
	ID       string
	Restarts int // how often Slurm had queued the job again before this process began
}

// Here returns the Slurm job that this process is in, as its environment says.
func Here(lookup func(name string) (string, bool)) (j Job, ok bool) {
	for _, name := range []string{"SLURM_JOB_ID", "SLURM_JOBID"} {
		if id, set := lookup(name); set && id != "" {
			count, _ := lookup("SLURM_RESTART_COUNT")
			j.ID = id
			j.Restarts, _ = strconv.Atoi(count)
			return j, true
		}
	}
	return j, false
}

// A Watch watches a job until Stop is called.
type Watch struct {
	job     Job
	reserve time.Duration
	show    func(ctx context.Context, id string) (slurmjob.Job, error)
	note    func(text string)

	check    chan struct{}
	answered chan struct{} // closed when ended has been set
	ended    job.Ended
	cancel   context.CancelCauseFunc
	stop     context.CancelFunc
	over     chan struct{}
}

// recheck is the time between two questions to Slurm if Slurm does not answer.
const recheck = 30 * time.Second

// Begin begins to watch a job. The context that it returns ends when ctx ends, or when at most reserve is left until
// the limit of the job. note shows the user a note.
func Begin(ctx context.Context, j Job, reserve time.Duration, note func(text string)) (context.Context, *Watch) {
	return begin(ctx, &Watch{job: j, reserve: reserve, show: slurmjob.Show, note: note})
}

// Until watches a job of a batch system other than Slurm. Of such a job, only the time limit is known. The context
// that Until returns ends when ctx ends, or when at most reserve is left until limit.
func Until(ctx context.Context, limit time.Time, reserve time.Duration) (context.Context, *Watch) {
	return begin(ctx, &Watch{reserve: reserve, show: func(context.Context, string) (slurmjob.Job, error) {
		return slurmjob.Job{State: "RUNNING", End: limit}, nil
	}})
}

// begin starts a watch.
func begin(ctx context.Context, w *Watch) (context.Context, *Watch) {
	w.check, w.answered, w.over = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	ctx, w.cancel = context.WithCancelCause(ctx)
	// If ctx ends while Slurm is being asked, the watch still waits for the answer.
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	go func() { defer close(w.over); w.run(ctx, asking) }()
	return ctx, w
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.stop()
	<-w.over
	w.cancel(nil)
}

// Check asks Slurm whether the job still runs, and ends the run if it does not.
func (w *Watch) Check() {
	select {
	case w.check <- struct{}{}:
	default: // a check is already waiting
	}
}

// End ends the run because the time of the job is almost up. The caller has got the signal that the
// user asked Slurm to send before the limit.
func (w *Watch) End() { w.cancel(order.BatchEnd{Ended: job.EndedBatchLimit}) }

// Ended returns why Slurm has ended the job. The context of the watch must be done. It returns
// job.EndedNot if Slurm does not answer.
func (w *Watch) Ended() job.Ended {
	select {
	case <-w.answered:
	case <-w.over: // the answer may have come before the end of the watch
	}
	select {
	case <-w.answered:
		return w.ended
	default:
		return job.EndedNot
	}
}

// run watches the job until ctx, the context of the run, ends. It then asks why. asking ends with the watch.
func (w *Watch) run(ctx, asking context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	noted := false
	var end time.Time // as Slurm said last; zero if it is not known
	for {
		select {
		case <-ctx.Done():
			w.askWhy(asking)
			return
		case <-asking.Done():
			return
		case <-w.check:
		case <-next.C:
		}
		if !end.IsZero() && time.Until(end) <= w.reserve {
			w.end(job.EndedBatchLimit)
			return
		}
		j, err := w.ask(asking, end)
		if err != nil && !errors.Is(err, slurmjob.ErrUnknown) {
			left := recheck
			if !end.IsZero() {
				left = min(left, max(0, time.Until(end)-w.reserve))
			} else if !noted && asking.Err() == nil {
				w.note(fmt.Sprintf("the time limit of job %s is not known: %v", w.job.ID, err))
				noted = true
			}
			next.Reset(left)
			continue
		}
		if err != nil || !j.Running() { // outside of the job (salloc), gangrun learns it in no other way
			w.end(w.of(j))
			return
		}
		next.Stop()
		if end = j.End; end.IsZero() {
			continue
		}
		left := time.Until(end) - w.reserve
		if left <= 0 {
			w.end(job.EndedBatchLimit)
			return
		}
		if left > slurmjob.Limit { // ask once more, because the limit may have been extended: the answer may take so long
			left -= slurmjob.Limit
		}
		next.Reset(left)
	}
}

// ask asks Slurm for the job. If end is not zero, it gives up when reserve is left until end.
func (w *Watch) ask(ctx context.Context, end time.Time) (slurmjob.Job, error) {
	if !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-w.reserve))
		defer cancel()
	}
	return w.show(ctx, w.job.ID)
}

// askWhy asks Slurm why it ends the job.
func (w *Watch) askWhy(ctx context.Context) {
	if j, err := w.show(ctx, w.job.ID); err == nil {
		w.answer(w.of(j))
	}
}

// answer records why Slurm ends the job.
func (w *Watch) answer(ended job.Ended) {
	w.ended = ended
	close(w.answered)
}

// end ends the run. Since Slurm was asked, the user or Slurm may have ended the run already.
func (w *Watch) end(ended job.Ended) {
	w.answer(ended)
	w.cancel(order.BatchEnd{Ended: ended})
}

// of returns why Slurm ends the job j.
func (w *Watch) of(j slurmjob.Job) job.Ended {
	switch j.Ending(w.job.Restarts) {
	case slurmjob.TimeLimit:
		return job.EndedBatchLimit
	case slurmjob.Preempted, slurmjob.Requeued:
		return job.EndedPreempted
	case slurmjob.NodeFail:
		return job.EndedNodeFailed
	}
	return job.EndedCancelled
}
