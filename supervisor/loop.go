package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/earlystop"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/retry"
	"github.com/gangrun/gangrun/supervisor/runreport"
	"github.com/gangrun/gangrun/supervisor/secret"
	"github.com/gangrun/gangrun/supervisor/watch"
)

// loop is one run that is in progress.
type loop struct {
	*Supervisor
	info   Run
	spec   job.Spec
	random func() float64
	clean  func(string) string // replaces secrets in a text; nil if there are none

	mu      sync.Mutex // guards folder and told.unsaved, and is held during Emit
	folder  runreport.Folder
	told    told         // what notes have said
	earlier []retry.Past // attempts of earlier starts of the batch job
	past    []retry.Past // attempts of this run
	avoid   avoid        // what the next placement must not use
	resume  resume
	pace    pace
	learnt  watch.Learnt // from the gaps between the steps of the job
	adopted adopted      // the attempt that was running when this controller took over
}

// told is what gangrun has already told the user in notes.
type told struct {
	unsaved bool // that the journal cannot be written
	unread  watch.Unread
}

// avoid has the hosts and GPUs that placements must not use.
type avoid struct {
	exclusions []exclusion  // what verdicts exclude
	lost       []string     // hosts that were lost with ranks of the last attempt
	barred     job.Excluded // hosts on which ranks may still be running
}

// emit adds the time to an event, and adds the event to the report and the journal. If the journal cannot be
// written, the run goes on, because the gang matters more than the journal. A note says so once.
func (l *loop) emit(e job.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emitLocked(e)
}

func (l *loop) emitLocked(e job.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if l.clean != nil {
		e = secret.Hide(e, l.clean)
	}
	e.Time = e.Time.Round(0) // without the monotonic clock, which the journal does not keep
	l.folder.Add(e)
	if err := l.Emit(e); err != nil && !l.told.unsaved {
		l.told.unsaved = true
		l.emitLocked(job.Event{Kind: job.KindNote, Text: fmt.Sprintf("the journal cannot be written: %v; the run goes on, but what is journalled of it will have gaps", err)})
	}
}

func (l *loop) state(s job.State, why string) {
	l.emit(job.Event{Kind: job.KindState, State: s, Text: why})
}

func (l *loop) note(format string, args ...any) {
	l.emit(job.Event{Kind: job.KindNote, Text: fmt.Sprintf(format, args...)})
}

func (l *loop) notes(notes []string) {
	for _, n := range notes {
		l.note("%s", n)
	}
}

// run does the preflight, if the job has one, and then the attempts.
func (l *loop) run(ctx context.Context) *end {
	if l.spec.Preflight != job.PreflightOff {
		if e := l.preflight(ctx); e != nil {
			return e
		}
	}
	l.lookFirst(ctx)
	return l.attempts(ctx, 1)
}

// attempts starts the gang again and again until the run ends. number is the number of the next attempt.
func (l *loop) attempts(ctx context.Context, number int) *end {
	l.adopted = adopted{} // from here on, the attempts are this controller's own
	for ; ; number++ {
		if e := l.attempt(ctx, number); e != nil {
			return l.sum(ctx, e)
		}
	}
}

// sum adds to the end of a run the facts on which its exit code depends.
func (l *loop) sum(ctx context.Context, e *end) *end {
	if last := len(l.past) - 1; last >= 0 && e.ending.State != job.StateSucceeded {
		e.ending.Cause = &l.past[last].Cause
		if e.ending.Action == "" {
			e.ending.Action = l.policy(ctx).Action(l.past[last].Cause)
		}
		e.ending.Exits = l.folder.Report().Last().Exits
	}
	e.ending.Saved, e.ending.Resume = l.resume.saved(), l.spec.Resume || l.spec.Requeue > 0
	if e.ending.Worth && e.ending.State == job.StateStoppedEarly {
		if e.ending.Saved = e.ending.Saved && l.kept(); !e.ending.Saved {
			e.hint = earlystop.NoCheckpoint(l.spec, order.Of(context.Cause(ctx)))
		}
	}
	return e
}

// preflight does the preflight. It returns nil if the gang may be started.
func (l *loop) preflight(ctx context.Context) *end {
	l.state(job.StatePreflight, "")
	var emitted []job.Finding
	openMPI := false // the trial used Open MPI
	findings, err := l.Checker.Check(ctx, l.spec, func(e job.Event) {
		e.Attempt = 0
		l.emit(e)
		if e.Kind == job.KindFinding && e.Finding != nil {
			emitted = append(emitted, *e.Finding)
		}
		if e.Kind == job.KindWireup && e.Wireup.Library != "" && l.spec.MPI == job.MPIAuto {
			openMPI = true
		}
	})
	for _, f := range findings {
		if !slices.ContainsFunc(emitted, func(t job.Finding) bool {
			return t.Check == f.Check && t.Severity == f.Severity && t.Host == f.Host && t.Text == f.Text
		}) {
			l.emit(job.Event{Kind: job.KindFinding, Finding: &f})
		}
	}
	if ctx.Err() != nil {
		return l.interrupted(ctx, " during the preflight")
	}
	var none NoPlacement
	if errors.As(err, &none) {
		return &end{ending: exitcode.Ending{State: job.StateNoPlacement, Never: none.Never}, text: none.Text, hint: none.Hint}
	}
	if err != nil {
		return l.failed("preflight", err, 0)
	}
	f := job.FirstError(findings)
	if f == nil {
		if openMPI {
			l.spec.MPI = job.MPIOpenMPI
		}
		return nil
	}
	e := &end{ending: exitcode.Ending{State: job.StatePreflightFailed, Finding: f}, text: f.Text, hint: f.Hint}
	if f.Cause != nil {
		e.ending.Action = l.policy(ctx).Action(*f.Cause)
	}
	return e
}

func (l *loop) policy(ctx context.Context) retry.Policy {
	deadline, _ := ctx.Deadline()
	diverge := 0
	if l.spec.RetryOnDiverge.Resume == job.DivergeEarlier {
		diverge = l.spec.RetryOnDiverge.Times
	}
	return retry.Policy{
		Diverge:     diverge,
		Retries:     l.spec.Retries,
		Actions:     l.spec.Policy,
		Checkpoints: l.spec.CheckpointDir != "",
		Elsewhere:   l.Elsewhere,
		Deadline:    deadline,
	}
}

// place waits for a place for the gang. If the gang does not fit without the hosts and GPUs that verdicts
// exclude, place uses them again (see goBack). The retry budget limits how often this happens.
func (l *loop) place(ctx context.Context, number int) (Lease, *end) {
	if ctx.Err() != nil {
		return Lease{}, l.interrupted(ctx, " before the gang was placed")
	}
	l.state(job.StateWaiting, "")
	emit := func(e job.Event) {
		e.Attempt = number
		l.emit(e)
	}
	excluded := l.excluded(ctx)
	but := union(excluded, l.avoid.barred)
	lease, err := l.Placer.Place(ctx, l.spec, but, emit)
	var none NoPlacement
	if ctx.Err() == nil && errors.As(err, &none) && !excluded.Empty() {
		lease, err = l.goBack(ctx, excluded, err, emit)
	}
	switch {
	case ctx.Err() != nil:
		if err == nil {
			lease.Release()
		}
		return Lease{}, l.interrupted(ctx, " while waiting for a place")
	case err == nil:
		return lease, nil
	case !errors.As(err, &none):
		return Lease{}, l.failed("placement", err, 0)
	}
	never := none.Never && but.Empty() // a later run may use what this one excludes
	e := &end{ending: exitcode.Ending{State: job.StateNoPlacement, Never: never}, text: none.Text, hint: none.Hint}
	if number > 1 { // an attempt has failed, and there is no place for another
		e.ending.State, e.ending.Budget = job.StateFailed, true
		e.text = "no place for another attempt: " + none.Text
		if !l.avoid.barred.Empty() {
			e.text += "; ranks may still be running on " + retry.Without(l.avoid.barred)[len(" without "):]
		}
	}
	return Lease{}, e
}

// backoff waits before a restart. It returns an end if the run's context is done first.
func (l *loop) backoff(ctx context.Context, wait time.Duration) *end {
	if !pause(ctx, time.Duration(float64(wait)*(0.75+0.5*l.random()))) {
		return l.interrupted(ctx, " while waiting to restart")
	}
	return nil
}

// union returns what a or b excludes, each name once.
func union(a, b job.Excluded) job.Excluded {
	join := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return job.Excluded{Hosts: join(a.Hosts, b.Hosts), Devices: join(a.Devices, b.Devices)}
}
