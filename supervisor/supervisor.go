// Package supervisor runs a job attempt by attempt until it ends well, or until
// going on is waste. Run is the loop; Policy, runreport and exitcode are the pure
// decisions that it is made of. It knows launchers, placers, the preflight and
// checkpoints only as the one-method interfaces below.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Launcher starts one gang and blocks until every rank of it is gone or named
// in Outcome.Unreaped; cancelling ctx ends the gang within its grace period.
// The error means that gangrun itself failed. emit is called one at a time, and
// not after Run has returned.
type Launcher interface {
	Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)
}

// Placer finds a place for a gang, without what is excluded, and leases it. It
// blocks while it waits, and says what for in state events (StateWaiting with a
// Text). It returns a NoPlacement when there is no place in time.
type Placer interface {
	Place(ctx context.Context, spec job.Spec, not job.Excluded, emit func(job.Event)) (Lease, error)
}

// Lease is a place that a gang holds.
type Lease struct {
	Placement   job.Placement
	Explanation job.Explanation
	// Held ends when the lease is lost, with the reason as its cause.
	Held context.Context
	// Release gives the place back and waits for what the lease keeps running.
	Release func()
}

// Holder watches the lease of a gang that an earlier controller has placed.
type Holder interface {
	// Hold returns a context that ends when the lease is lost, with the reason as its
	// cause, and what ends the watch.
	Hold(p job.Placement) (held context.Context, release func())
}

// Looker tells which of some hosts do not answer, and why, in words. It looks at all at
// once, and blocks for as long as a connection may take to be made.
type Looker interface {
	Silent(ctx context.Context, hosts []string) map[string]string
}

// Checker is the preflight: static checks, and the trial where the job asks for
// one. It may emit findings as it makes them, and returns them all.
type Checker interface {
	Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error)
}

// Checkpoints finds the newest good checkpoint in a directory, but none of those
// in not, unless it has changed; nil when there is none. The notes say what looked
// newer and is not good, for the user.
type Checkpoints interface {
	Newest(ctx context.Context, dir string, not []job.Checkpoint) (found *job.Checkpoint, notes []string, err error)
}

// NoPlacement is a Placer's error when there is no place for the gang in time.
type NoPlacement struct {
	Text string // what is missing
	Hint string // what to do about it
	// Never says that the same hosts will not do at another time either, as long as
	// nobody changes something about them or the job.
	Never bool
}

// Error says what is missing.
func (e NoPlacement) Error() string { return e.Text }

// Interrupted is the cause (see context.Cause) of a context that ends because
// the user ended the run.
type Interrupted struct {
	Signal syscall.Signal
	By     string // what was typed elsewhere that stands for the signal; "" is the signal itself
}

// Error names the signal, or what stands for it.
func (e Interrupted) Error() string {
	if e.By != "" {
		return "cancelled by " + e.By
	}
	return "cancelled by " + job.SignalName(int(e.Signal))
}

// TimeLimit is the cause of the context that a run's parts are given once the
// run's time is up.
type TimeLimit struct{ Limit job.Duration }

// Error names the limit.
func (e TimeLimit) Error() string { return fmt.Sprintf("the time limit of %s was reached", e.Limit) }

// LeaseLost is the cause of the context of a launcher whose gang has lost its
// place.
type LeaseLost struct{ Reason error }

// Error says why.
func (e LeaseLost) Error() string { return fmt.Sprintf("the lease was lost: %v", e.Reason) }

// Unwrap returns the reason.
func (e LeaseLost) Unwrap() error { return e.Reason }

// Supervisor runs jobs. All fields but Holder, Looker, Checkpoints, Refusal, Rand and Elsewhere
// must be set; Checkpoints is needed for jobs with a checkpoint directory, Checker for
// jobs whose preflight is not off, Holder for Resume.
type Supervisor struct {
	Launcher Launcher
	Placer   Placer
	Holder   Holder
	// Looker is asked about hosts that have cost an attempt before they are used
	// again; nil takes all for such as answer.
	Looker      Looker
	Checker     Checker
	Checkpoints Checkpoints
	// Diagnose finds the cause of a failed attempt.
	Diagnose func(job.Evidence) job.Cause
	// Refusal returns the cause of an error that is a file system's: it is full, say.
	// The zero Refusal knows none.
	Refusal func(error) (job.Cause, bool)
	// Emit shows an event and writes it to the journal. It is called one at a
	// time. Its error means that the journal could not be written: it must have
	// shown the event all the same, and the run goes on.
	Emit func(job.Event) error
	// Rand gives numbers in [0, 1) for the jitter of the back-off; nil uses
	// math/rand/v2.
	Rand func() float64
	// Elsewhere says that the job could run on another host than those of this
	// very machine.
	Elsewhere bool
}

// Run is the identity of one run and where its attempts log.
type Run struct {
	ID         string
	Controller job.Controller
	// LogDir makes the directory of an attempt's log files.
	LogDir func(attempt int) (string, error)
}

// Run runs a valid spec to its end and returns what became of it. The report is
// whole even when the journal is not. The error means that gangrun itself
// failed, and is told in the report too. Cancelling ctx ends the run in order;
// its cause should be an Interrupted.
func (s *Supervisor) Run(ctx context.Context, info Run, spec job.Spec) (runreport.Report, error) {
	return s.conduct(ctx, info, spec, nil, (*loop).run)
}

// Preflight does no more of a run than its preflight, and ends as the run would
// have ended there; with nothing in the gang's way it succeeds.
func (s *Supervisor) Preflight(ctx context.Context, info Run, spec job.Spec) (runreport.Report, error) {
	return s.conduct(ctx, info, spec, nil, func(l *loop, ctx context.Context) *end {
		if e := l.preflight(ctx); e != nil {
			return e
		}
		return &end{ending: exitcode.Ending{State: job.StateSucceeded}, text: "no problem found"}
	})
}

// conduct wraps the part of a run that body does in what every run begins and
// ends with. past is what was journalled of it before.
func (s *Supervisor) conduct(ctx context.Context, info Run, spec job.Spec, past []job.Event, body func(*loop, context.Context) *end) (runreport.Report, error) {
	if spec.Timeout > 0 {
		begun := time.Now()
		if len(past) > 0 {
			begun = past[0].Time
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, begun.Add(time.Duration(spec.Timeout)), TimeLimit{spec.Timeout})
		defer cancel()
	}
	l := &loop{Supervisor: s, info: info, spec: spec, random: s.Rand}
	if len(spec.Secret) > 0 {
		l.clean = hider(spec)
	}
	if l.random == nil {
		l.random = rand.Float64
	}
	spec = spec.Redacted()
	if len(past) == 0 {
		l.emit(job.Event{Kind: job.KindCreated, Run: info.ID, Controller: &info.Controller, Spec: &spec})
		for _, f := range secretFindings(l.spec) {
			l.emit(job.Event{Kind: job.KindFinding, Finding: &f})
		}
	} else {
		for _, e := range past {
			l.folder.Add(e)
		}
		l.emit(job.Event{Kind: job.KindAttached, Run: info.ID, Controller: &info.Controller})
	}
	end := body(l, ctx)
	code, why := exitcode.Of(end.ending, spec.ExitCode)
	l.emit(job.Event{Kind: job.KindEnded, State: end.ending.State, ExitCode: &code, ExitWhy: why, Text: end.text, Hint: end.hint})
	return l.folder.Report(), end.err
}

// end is how a run ends.
type end struct {
	ending exitcode.Ending
	text   string // why
	hint   string // what to do about it
	err    error  // gangrun itself failed
}

// failed is the end of a run that gangrun could not go on with: by its own fault, or
// that of a file system. That is the cause of the attempt of that number, if there is one.
func (l *loop) failed(doing string, err error, attempt int) *end {
	err = fmt.Errorf("%s: %w", doing, err)
	storage := OfStorage(err)
	e := &end{ending: exitcode.Ending{State: job.StateFailed, Internal: !storage, Storage: storage}, text: err.Error(), err: err}
	if !storage || l.Refusal == nil {
		return e
	}
	if cause, ok := l.Refusal(err); ok {
		e.text, e.hint = fmt.Sprintf("%s: %v", cause.Category, err), cause.Hint
		if attempt > 0 {
			l.emit(job.Event{Kind: job.KindCause, Attempt: attempt, Cause: &cause})
		}
	}
	return e
}

// interrupted is the end of a run whose context is done.
func interrupted(ctx context.Context, during string) *end {
	cause := context.Cause(ctx)
	var limit TimeLimit
	if errors.As(cause, &limit) {
		return &end{ending: exitcode.Ending{State: job.StateFailed, TimeLimit: true}, text: limit.Error() + during}
	}
	by := Interrupted{Signal: syscall.SIGTERM} // who cancels without a word is taken for "gangrun stop"
	errors.As(cause, &by)
	return &end{ending: exitcode.Ending{State: job.StateCancelled, Signal: int(by.Signal)}, text: by.Error() + during}
}
