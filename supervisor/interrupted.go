package supervisor

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/exitcode"
)

// Interrupted is the cause (see context.Cause) of a context that ends because the user has
// cancelled the run.
type Interrupted struct {
	Signal syscall.Signal
	Now    bool   // end the ranks without a grace period
	By     string // the command that cancelled the run, its user and its host; empty for a signal
}

// Error names the command or the signal.
func (e Interrupted) Error() string {
	if e.By != "" {
		return "cancelled by " + e.By
	}
	return "cancelled by " + job.SignalName(int(e.Signal))
}

// TimeLimit is the cause of a context that ends because the run has reached its time limit.
type TimeLimit struct{ Limit job.Duration }

// Error names the limit.
func (e TimeLimit) Error() string { return fmt.Sprintf("the time limit of %s was reached", e.Limit) }

// BatchEnd is the cause of a context that ends because the batch system ends the batch job.
// Ended is EndedBatchLimit, EndedPreempted, EndedNodeFailed or EndedCancelled.
type BatchEnd struct{ Ended job.Ended }

// Error says why the batch system ends the batch job.
func (e BatchEnd) Error() string { return batchTexts[e.Ended] }

// orderOf returns the order that a context of a run has ended with; nil if that is not why it has ended.
func orderOf(cause error) *job.Order {
	var by Interrupted
	var limit TimeLimit
	var batch BatchEnd
	switch {
	case errors.As(cause, &by):
		return &job.Order{Ended: job.EndedCancelled, Signal: int(by.Signal), By: by.By}
	case errors.As(cause, &limit):
		return &job.Order{Ended: job.EndedTimeLimit}
	case errors.As(cause, &batch):
		return &job.Order{Ended: batch.Ended}
	}
	return nil
}

// given returns the cause for which an earlier controller had begun to end a run with this time limit.
func given(o job.Order, limit job.Duration) error {
	switch {
	case o.Signal != 0:
		return Interrupted{Signal: syscall.Signal(o.Signal), By: o.By}
	case o.Ended == job.EndedTimeLimit:
		return TimeLimit{limit}
	}
	return BatchEnd{o.Ended}
}

// batchTexts says what the batch system does.
var batchTexts = map[job.Ended]string{
	job.EndedBatchLimit: "the time of the batch job is up",
	job.EndedPreempted:  "the batch system takes the hosts of the job away (preemption or requeue)",
	job.EndedNodeFailed: "the batch system ends the job because a node of it failed",
	job.EndedCancelled:  "the batch job was cancelled",
}

// why returns why the context of a run is done. A context without a cause counts as cancelled.
func (l *loop) why(ctx context.Context) job.Ended {
	var limit TimeLimit
	var batch BatchEnd
	var by Interrupted
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &limit):
		return job.EndedTimeLimit
	case errors.As(cause, &batch):
		return batch.Ended
	case errors.As(cause, &by) && by.By == "" && by.Signal == syscall.SIGTERM && l.Batch != nil:
		if ended := l.Batch(); ended != job.EndedNot {
			return ended
		}
	}
	return job.EndedCancelled
}

// remains reports whether an early stop remains the reason for the end of a run whose context has ended, too. It does if
// it was decided first, which is why the gang has lost. A user who cancels the run wants another end.
func (l *loop) remains(ctx context.Context, lost error) bool {
	var early StoppedEarly
	return errors.As(lost, &early) && l.why(ctx) != job.EndedCancelled
}

// interrupted returns the end of a run whose context is done.
func (l *loop) interrupted(ctx context.Context, during string) *end {
	switch why := l.why(ctx); why {
	case job.EndedTimeLimit:
		return &end{ending: exitcode.Ending{State: job.StateFailed, TimeLimit: true}, text: context.Cause(ctx).Error() + during}
	case job.EndedBatchLimit:
		return &end{ending: exitcode.Ending{State: job.StateFailed, TimeLimit: true}, text: batchTexts[why] + during}
	case job.EndedPreempted, job.EndedNodeFailed:
		return &end{ending: exitcode.Ending{State: job.StateFailed, HostsTaken: true}, text: batchTexts[why] + during}
	}
	by := Interrupted{Signal: syscall.SIGTERM}
	var batch BatchEnd
	if errors.As(context.Cause(ctx), &batch) {
		return &end{ending: exitcode.Ending{State: job.StateCancelled, Signal: int(by.Signal)}, text: batch.Error() + during}
	}
	errors.As(context.Cause(ctx), &by)
	return &end{ending: exitcode.Ending{State: job.StateCancelled, Signal: int(by.Signal)}, text: by.Error() + during}
}
