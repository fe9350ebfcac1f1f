// Package supervisor runs a job attempt by attempt until the job succeeds, or until another attempt would be
// wasted. Supervisor.Run is the loop. The packages retry and exitcode make the decisions, and runreport
// computes the report; they have no side effects. The package uses launchers, placers, the preflight and
// checkpoints only through interfaces.
package supervisor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/internal/turn"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/runreport"
	"github.com/gangrun/gangrun/supervisor/secret"
)

// Launcher starts one gang. Run blocks until every rank is gone or is listed in Outcome.Unreaped. If ctx is
// cancelled, Run ends the gang within its grace period. An error means that no gang could be started, or that
// gangrun itself failed. Calls of emit do not overlap, and Run calls emit no more after it has returned.
type Launcher interface {
	Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)
}

// Placer finds a place for a gang and leases it. Place does not use the hosts and GPUs in excluded. While Place
// waits for a place, it emits state events (StateWaiting with a Text) that say what it waits for. It returns a
// NoPlacement if it gets no place in time.
type Placer interface {
	Place(ctx context.Context, spec job.Spec, excluded job.Excluded, emit func(job.Event)) (Lease, error)
}

// Lease is a place that a gang holds.
type Lease struct {
	Placement   job.Placement
	Explanation job.Explanation
	// Held ends when the lease is lost. Its cause (see context.Cause) is the reason.
	Held context.Context
	// Release gives the place back, and waits until the goroutines of the lease have ended.
	Release func()
}

// Holder watches the lease of a gang that an earlier controller has placed.
type Holder interface {
	// Hold returns a context that ends when the lease is lost. The cause of the context (see context.Cause) is
	// the reason. release ends the watch.
	Hold(p job.Placement) (held context.Context, release func())
}

// Looker finds out which hosts cannot be used. Unfit tries all hosts at the same time. It returns the hosts
// that do not answer or do not pass the static checks, each with the reason. Its time limit
// is the sum of the limits of a connection and of the checks.
type Looker interface {
	Unfit(ctx context.Context, hosts []string) map[string]string
}

// Checker is the preflight: static checks and, if the job asks for one, a trial. Check returns all findings,
// even those that it has emitted.
type Checker interface {
	Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error)
}

// Checkpoints finds checkpoints. Newest returns the newest good checkpoint in a directory, or nil if there is
// none. It ignores the checkpoints in avoided, unless they have changed since. notes tell the user which newer
// checkpoints are not good.
type Checkpoints interface {
	Newest(ctx context.Context, dir string, avoided []job.Checkpoint) (found *job.Checkpoint, notes []string, err error)
	// Scan returns the files and directories in a directory that may be a checkpoint, or a part of a
	// checkpoint. A saves.Follower takes such a list.
	Scan(dir string) ([]saves.Found, error)
	// NewestFinite is like Newest, but also ignores checkpoints that have NaN or +Inf among their numbers.
	NewestFinite(ctx context.Context, dir string, avoided []job.Checkpoint) (found *job.Checkpoint, notes []string, err error)
}

// NoPlacement is the error of a Placer if there is no place for the gang in time.
type NoPlacement struct {
	Text string // what is missing
	Hint string // what the user can do about it
	// Never is true if it is useless to wait: the gang will not fit until somebody changes the hosts or the
	// job.
	Never bool
}

// Error says what is missing.
func (e NoPlacement) Error() string { return e.Text }

// LeaseLost is the cause of a Launcher's context that ends because the gang has lost its lease.
type LeaseLost struct{ Reason error }

// Error says why the lease was lost.
func (e LeaseLost) Error() string { return fmt.Sprintf("the lease was lost: %v", e.Reason) }

// Unwrap returns the reason.
func (e LeaseLost) Unwrap() error { return e.Reason }

// Supervisor runs jobs. Launcher, Placer, Diagnose and Emit must be set. Checkpoints is needed for jobs with a
// checkpoint directory, Checker for jobs whose preflight is not off, and Holder for Resume.
type Supervisor struct {
	Launcher Launcher
	Placer   Placer
	Holder   Holder
	// Looker checks hosts that have made an attempt fail before gangrun uses them again. If it
	// is nil, the Supervisor assumes that all hosts can be used.
	Looker      Looker
	Checker     Checker
	Checkpoints Checkpoints
	// Diagnose finds the cause of a failed attempt.
	Diagnose func(job.Evidence) job.Cause
	// If an error comes from a file system, for instance because the file system is full, Refusal returns a
	// cause, and true. It may be nil.
	Refusal func(error) (job.Cause, bool)
	// Emit shows an event and writes it to the journal. Calls do not overlap. An error means
	// that the journal could not be written. Even then, Emit must have shown the event. The run
	// goes on.
	Emit func(job.Event) error
	// Rand returns numbers in [0, 1) for the jitter of the back-off. If it is nil, math/rand/v2
	// is used.
	Rand func() float64
	// Asker asks the ranks for a checkpoint before gangrun ends them. If it is nil, nobody asks them.
	Asker Asker
	// Stacks returns where the ranks of the running gang are, within a limited time. If it is nil, gangrun
	// ends a hung gang without collecting its stacks first.
	Stacks func(ctx context.Context, limit time.Duration) []job.RankStack
	// Pulse is called with the pulses of the ranks of an attempt. Emit gets no events with pulses. Pulse may be
	// nil.
	Pulse func(attempt int, p job.Pulses)
	// Batch is called after a signal has cancelled the run. It returns why the batch system
	// sent the signal, or job.EndedNot if the batch system did not send it. Batch may block for
	// some seconds. It is nil outside of batch jobs.
	Batch func() job.Ended
	// Elsewhere is true if the job could run on hosts other than this machine.
	Elsewhere bool
}

// Run has the ID of a run, its controller, its batch job, and the function that creates its
// directories for log files.
type Run struct {
	ID         string
	Controller job.Controller
	Findings   []job.Finding // about the job, from before the run
	Batch      *job.BatchJob // nil outside of batch jobs
	// User ends when the user cancels the run, with an order.Interrupted as its cause, even if the run is
	// already being ended for another reason. Nil means the context that is passed to Supervisor.Run.
	User context.Context
	// Legs has the events of the runs in earlier legs of the batch job, oldest first. The limits on restarts
	// also count the restarts of these runs. If one of them could not load a checkpoint, the checkpoint counts
	// as one that this run could not load.
	Legs [][]job.Event
	// Past returns the attempts of earlier runs, the newest first. It is called once, for jobs with a checkpoint
	// directory. It may be nil.
	Past func(ctx context.Context) ([]saves.Span, error)
	// LogDir creates the directory for an attempt's log files, and returns its path.
	LogDir func(attempt int) (string, error)
}

// Run runs a job to its end and returns the report. The report is complete even if the journal is not. spec
// must be valid. An error means that gangrun itself failed; the report also says so. If ctx is cancelled, Run
// ends the gang, and then the run. The cause of ctx should then be an order.Interrupted.
func (s *Supervisor) Run(ctx context.Context, info Run, spec job.Spec) (runreport.Report, error) {
	return s.conduct(ctx, info, spec, nil, (*loop).run)
}

// Preflight does only the preflight of a run. It returns the report of a run that ends after the preflight.
// That run has succeeded if nothing prevents the start of the gang.
func (s *Supervisor) Preflight(ctx context.Context, info Run, spec job.Spec) (runreport.Report, error) {
	return s.conduct(ctx, info, spec, nil, func(l *loop, ctx context.Context) *end {
		if e := l.preflight(ctx); e != nil {
			return e
		}
		return &end{ending: exitcode.Ending{State: job.StateSucceeded}, text: "no problem found"}
	})
}

// conduct does what is the same at the beginning and at the end of every run, and calls body in between. past
// has the events that earlier controllers have written to the journal.
func (s *Supervisor) conduct(ctx context.Context, info Run, spec job.Spec, past []job.Event, body func(*loop, context.Context) *end) (runreport.Report, error) {
	if info.User == nil {
		info.User = ctx
	}
	if spec.Timeout > 0 {
		begun := time.Now()
		if len(past) > 0 {
			begun = past[0].Time
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, begun.Add(time.Duration(spec.Timeout)), order.TimeLimit{Limit: spec.Timeout})
		defer cancel()
	}
	l := &loop{Supervisor: s, info: info, spec: spec, random: s.Rand, earlier: s.history(info.Legs)}
	l.resume.turn = turn.New()
	if len(spec.Secret) > 0 {
		l.clean = secret.Hider(spec)
	}
	if l.random == nil {
		l.random = rand.Float64
	}
	spec = spec.Redacted()
	if len(past) == 0 {
		l.emit(job.Event{Kind: job.KindCreated, Run: info.ID, Controller: &info.Controller, Spec: &spec, Batch: info.Batch})
		for _, f := range append(secret.Findings(l.spec), info.Findings...) {
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
	verdict, _ := exitcode.Of(end.ending, job.ExitVerdict)
	l.emit(job.Event{Kind: job.KindEnded, State: end.ending.State, ExitCode: &code, ExitWhy: why, MayHelp: verdict == exitcode.MayPass, Text: end.text, Hint: end.hint})
	return l.folder.Report(), end.err
}

// end is how a run ends.
type end struct {
	ending exitcode.Ending
	text   string // why
	hint   string // what to do about it
	err    error  // gangrun itself failed
}

// failed returns the end of a run that gangrun cannot continue because of its own fault or a fault of a file
// system. A fault of a file system is recorded as the cause of the attempt. attempt is 0 if there is no
// attempt.
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
