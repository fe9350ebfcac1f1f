// Package order has the reasons for which gangrun ends a run that has not failed. A reason is the cause of a
// context in gangrun, and a job.Order in the journal.
package order

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/gangrun/gangrun/internal/job"
)

// Interrupted is the cause (see context.Cause) of a context that ends because the user has
// cancelled the run.
type Interrupted struct {
	Signal syscall.Signal
	Now    bool   // end the ranks without a grace period
	By     string // the command that cancelled the run, its user and its host; "" if a signal did
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

// Error says what the batch system does.
func (e BatchEnd) Error() string { return texts[e.Ended] }

var texts = map[job.Ended]string{
	job.EndedBatchLimit: "the time of the batch job is up",
	job.EndedPreempted:  "the batch system takes the hosts of the job away (preemption or requeue)",
	job.EndedNodeFailed: "the batch system ends the job because a node of it failed",
	job.EndedCancelled:  "the batch job was cancelled",
}

// Of returns the order to end a run that corresponds to cause, the cause of a context. It returns nil if cause is
// not such an order.
func Of(cause error) *job.Order {
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

// Cause is the reverse of Of: it returns the cause for the order o. limit is the time limit of the run. If o is nil,
// as in records of older versions of gangrun, the cause is a SIGTERM.
func Cause(o *job.Order, limit job.Duration) error {
	switch {
	case o == nil:
		return Interrupted{Signal: syscall.SIGTERM}
	case o.Signal != 0:
		return Interrupted{Signal: syscall.Signal(o.Signal), By: o.By}
	case o.Ended == job.EndedTimeLimit:
		return TimeLimit{limit}
	}
	return BatchEnd{o.Ended}
}
