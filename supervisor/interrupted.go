package supervisor

import (
	"context"
	"errors"
	"syscall"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/order"
)

// why returns why the context of a run is done. A context without a cause counts as cancelled.
func (l *loop) why(ctx context.Context) job.Ended {
	var limit order.TimeLimit
	var batch order.BatchEnd
	var by order.Interrupted
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

// remains reports whether an early stop remains the reason for the end of a run whose context has ended, too. lost is
// why the gang was ended, if that was decided first. A user who cancels the run then wants another end.
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
		return &end{ending: exitcode.Ending{State: job.StateFailed, TimeLimit: true}, text: order.BatchEnd{Ended: why}.Error() + during}
	case job.EndedPreempted, job.EndedNodeFailed:
		return &end{ending: exitcode.Ending{State: job.StateFailed, HostsTaken: true}, text: order.BatchEnd{Ended: why}.Error() + during}
	}
	by := order.Interrupted{Signal: syscall.SIGTERM}
	var batch order.BatchEnd
	if errors.As(context.Cause(ctx), &batch) {
		return &end{ending: exitcode.Ending{State: job.StateCancelled, Signal: int(by.Signal)}, text: batch.Error() + during}
	}
	errors.As(context.Cause(ctx), &by)
	return &end{ending: exitcode.Ending{State: job.StateCancelled, Signal: int(by.Signal)}, text: by.Error() + during}
}
