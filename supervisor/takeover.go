package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/earlystop"
	"github.com/gangrun/gangrun/supervisor/eventkey"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/retry"
	"github.com/gangrun/gangrun/supervisor/runreport"
	"github.com/gangrun/gangrun/supervisor/secret"
)

// Resume continues a run whose controller is gone, from the end of its journal. events has all events of the
// journal. If an attempt was going on and all its ranks had started, Resume takes over the attempt. If only
// some of its ranks had started, Resume ends the attempt, which then counts as failed. spec is the job of the
// run, with its secrets.
func (s *Supervisor) Resume(ctx context.Context, info Run, spec job.Spec, events []job.Event) (runreport.Report, error) {
	return s.conduct(ctx, info, spec, events, func(l *loop, ctx context.Context) *end { return l.continueRun(ctx, events) })
}

// trace is the state in which earlier controllers have left a run.
type trace struct {
	checked bool // the preflight has passed
	looked  bool // gangrun has looked for checkpoints before the first attempt

	// The fields below describe the newest attempt that was placed. number is 0 if there is none.
	number    int
	placement job.Placement
	from      string          // checkpoint
	resumed   *job.Checkpoint // the checkpoint at from
	before    *job.Checkpoint // the furthest checkpoint when the attempt began
	logs      string
	launched  bool
	whole     bool // every rank was started
	ordered
	outcome *job.Outcome
	verdict *job.Verdict
	judged  time.Time
}

// ordered has what the earlier controller had begun to do to end the attempt.
type ordered struct {
	stopping  bool
	cancelled bool              // the earlier controller was ending the run
	order     *job.Order        // why the run was being ended; nil in records of older versions
	early     *job.CurveVerdict // the verdict for which the run was being ended
	hang      *job.HangReport   // the hang for which the gang was being ended
}

// take records an order to end the run, unless there is one already.
func (o *ordered) take(from *job.Order) {
	if from != nil && o.order == nil {
		o.order, o.cancelled = from, true
	}
}

// adopted has what the journal says of the attempt that this controller has taken over.
type adopted struct {
	told     map[string]bool
	exits    []job.Exit // the newest exit of each rank, in the order in which they were reported
	failed   bool       // a rank had failed by itself
	stopping bool
	known    *job.Cause
	asked    job.BeforeStop // how the ranks were asked for a checkpoint; "" if they were not
	grace    job.Duration   // how long agents outlive their controller
}

// controllerDied is the error of an attempt whose controller died before all ranks were started.
type controllerDied struct{ number int }

// Error names the attempt.
func (c controllerDied) Error() string {
	return fmt.Sprintf("the controller died before every rank of attempt %d was started", c.number)
}

// restore rebuilds the state of the loop from the journal, and returns how far the run was.
func (l *loop) restore(past []job.Event) trace {
	var t trace
	l.adopted = adopted{told: map[string]bool{}, grace: l.spec.OrphanGrace}
	for _, e := range past {
		switch e.Kind {
		case job.KindState:
			t.checked = t.checked || e.State == job.StateWaiting && e.Text == ""
		case job.KindWireup:
			if e.Attempt == 0 && e.Wireup != nil && e.Wireup.Library != "" && l.spec.MPI == job.MPIAuto {
				l.spec.MPI = job.MPIOpenMPI // the trial has used it
			}
		case job.KindCheckpoint:
			l.resume.restore(e, l.spec.Resume)
			t.looked = t.looked || e.Attempt == 0
		}
		if e.Attempt == 0 || e.Attempt < t.number {
			continue
		}
		if e.Attempt > t.number {
			if e.Kind != job.KindPlaced && e.Kind != job.KindAttempt {
				continue // the attempt still waits for a place
			}
			t = trace{checked: true, looked: t.looked, number: e.Attempt}
			l.adopted = adopted{told: map[string]bool{}, grace: l.spec.OrphanGrace}
		}
		l.adopted.add(e)
		switch e.Kind {
		case job.KindPlaced:
			if e.Placement != nil {
				t.placement = *e.Placement
			}
		case job.KindAttempt:
			t.launched, t.from, t.resumed, t.logs, t.before = true, e.ResumeFrom, e.Checkpoint, e.LogDir, l.resume.best
		case job.KindAllStarted:
			t.whole = true
		case job.KindNote:
			t.take(e.Order)
			if e.Stop == job.StopOrder && !l.adopted.failed {
				t.cancelled, l.adopted.asked = true, l.spec.BeforeStop
			}
		case job.KindStop:
			t.take(e.Order)
			t.cancelled = t.cancelled || !l.adopted.failed && !t.stopping && (e.Stop == job.StopOrder || e.Stop == job.StopHurry)
			t.stopping = true
		case job.KindCurve:
			if e.Curve != nil && e.Curve.Action == job.EarlyEnd {
				if t.early = e.Curve; !earlystop.Spoils(e.Curve.Kind) && l.spec.BeforeStop.Asks() {
					l.adopted.asked = l.spec.BeforeStop
				}
			}
		case job.KindHang:
			t.hang = e.Hang
		case job.KindOutcome:
			t.outcome = e.Outcome
		case job.KindVerdict:
			if e.Verdict == nil {
				break
			}
			t.verdict, t.judged = e.Verdict, e.Time
			p := retry.Past{From: t.before, Saved: l.resume.best, Resumed: t.resumed, Step: l.stepOf(t.number), Spoilt: e.Verdict.Avoid}
			if c := l.adopted.known; c != nil {
				p.Cause, p.Devices = *c, devicesOf(t.placement, c.Rank)
			}
			l.past = append(l.past, p)
			l.avoid.exclusions = append(l.avoid.exclusions, exclusion{e.Verdict.Exclude, e.Time.Add(min(0, time.Since(e.Time)))}) // the clock may have been set back
			if t.outcome != nil {
				for _, u := range t.outcome.Unreaped {
					l.avoid.barred = union(l.avoid.barred, job.Excluded{Hosts: []string{u.Host}})
				}
			}
		}
	}
	if t.number > 0 && !t.looked && !l.spec.Resume {
		l.resume.blind = past[0].Time
	}
	return t
}

// stepOf returns the furthest step of an attempt, or -1 if there is none.
func (l *loop) stepOf(number int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.folder.Report().Attempts {
		if a.Number == number {
			return a.Step
		}
	}
	return -1
}

// continueRun continues from the end of the journal to the end of the run.
func (l *loop) continueRun(ctx context.Context, past []job.Event) *end {
	t := l.restore(past)
	var by order.Interrupted
	if now := errors.As(context.Cause(ctx), &by) && by.Now; t.cancelled && !now {
		if t.order != nil { // the order came before the reason for which ctx may have ended since
			ctx = context.WithoutCancel(ctx)
		}
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		cancel(order.Cause(t.order, l.spec.Timeout))
	}
	switch {
	case t.number == 0 && !t.checked:
		return l.run(ctx)
	case t.number == 0:
		if !t.looked {
			l.lookFirst(ctx)
		}
		return l.attempts(ctx, 1)
	case !t.launched:
		if t.number > 1 {
			l.lookAgain(ctx, t.number-1, l.before())
		}
		return l.attempts(ctx, t.number)
	}
	if e := l.finish(ctx, t); e != nil {
		return l.sum(ctx, e)
	}
	return l.attempts(ctx, t.number+1)
}

// finish brings the attempt that was running to its end. It returns nil if the gang is to be started again.
func (l *loop) finish(ctx context.Context, t trace) *end {
	switch {
	case t.verdict == nil && t.outcome != nil:
		l.resume.best = t.before // judge finds the attempt's checkpoints again
		return l.judge(ctx, t.number, t.placement, t.resumed, *t.outcome, l.stopping(ctx, t))
	case t.verdict == nil:
		outcome, e, lost := l.adopt(ctx, t)
		if e != nil {
			return e
		}
		return l.judge(ctx, t.number, t.placement, t.resumed, outcome, lost)
	case t.verdict.Action == job.Restart:
		l.lookAgain(ctx, t.number, l.before())
		return l.backoff(ctx, max(0, time.Duration(t.verdict.Wait)-max(0, time.Since(t.judged)))) // the clock may have been set back
	case t.verdict.Action == job.Succeed:
		return &end{ending: exitcode.Ending{State: job.StateSucceeded}, text: t.verdict.Reason}
	}
	cause := l.past[len(l.past)-1].Cause
	switch retry.CategoryOf(cause) {
	case job.Cancelled:
		signal := int(syscall.SIGTERM)
		if t.order != nil && t.order.Signal != 0 {
			signal = t.order.Signal
		}
		return &end{ending: exitcode.Ending{State: job.StateCancelled, Signal: signal}, text: t.verdict.Reason}
	case job.TimeLimit:
		return &end{ending: exitcode.Ending{State: job.StateFailed, TimeLimit: true}, text: t.verdict.Reason}
	}
	return ending(*t.verdict, cause)
}

// stopping returns the early stop or the hang for which the earlier controller was ending the gang. It returns nil if
// there was none, or if the run has to end for another reason, which then counts.
func (l *loop) stopping(ctx context.Context, t trace) (reason error) {
	switch {
	case t.early != nil:
		reason = StoppedEarly{*t.early}
	case t.hang != nil:
		reason = Hung{*t.hang}
	}
	if ctx.Err() != nil && !l.remains(ctx, reason) {
		return nil
	}
	return reason
}

// adopt takes over a gang that another controller has started.
func (l *loop) adopt(ctx context.Context, t trace) (job.Outcome, *end, error) {
	defer l.withdraw(context.WithoutCancel(ctx))
	reason := l.stopping(ctx, t)
	end := l.endOf(ctx, t.number, t.placement, reason)
	defer end.release()
	if !t.whole && !l.adopted.failed {
		end.now(controllerDied{t.number})
	}
	l.adopted.stopping = l.adopted.stopping || ctx.Err() != nil || reason != nil // a gang that is being ended is not lost
	held, release := l.Holder.Hold(t.placement)
	defer release()
	defer watchLease(ctx, held, end.now)()
	a := l.order(t.number, t.placement, t.from, t.logs)
	a.Adopt = true
	emit := l.watch(end, t.number)
	return l.stay(ctx, end, a, func(e job.Event) {
		known := e
		if l.clean != nil {
			known = secret.Hide(e, l.clean)
		}
		if !l.adopted.knows(known) {
			emit(e)
		}
	})
}

// add records an event of the attempt that is in the journal.
func (a *adopted) add(e job.Event) {
	if key := eventkey.Of(e); key != "" {
		a.told[key] = true
	}
	switch e.Kind {
	case job.KindExit:
		if e.Exit == nil {
			return
		}
		x := *e.Exit
		x.Stopped = x.Stopped || a.asked != "" && earlystop.Answers(x, a.asked)
		a.failed = a.failed || failedByItself(job.Outcome{Exits: []job.Exit{x}})
		if i := a.of(x.Rank); i >= 0 {
			a.exits[i] = x
		} else {
			a.exits = append(a.exits, x)
		}
	case job.KindStop:
		a.stopping = true
	case job.KindCause:
		a.known = e.Cause
	}
}

func (a *adopted) of(rank int) int {
	return slices.IndexFunc(a.exits, func(x job.Exit) bool { return x.Rank == rank })
}

// knows reports whether an event of the adopted gang is already in the journal. Agents report all events again.
// A rank whose exit is in the journal is not lost with its agent.
func (a *adopted) knows(e job.Event) bool {
	if e.Kind == job.KindExit && e.Exit.Status == job.Lost && a.of(e.Exit.Rank) >= 0 {
		return true
	}
	return a.told[eventkey.Of(e)]
}

// complete returns the outcome of the adopted gang with the order of exits of the journal, and
// with the exits of ranks whose agents have ended since.
func (a *adopted) complete(o job.Outcome) job.Outcome {
	exits := make([]job.Exit, len(a.exits), len(a.exits)+len(o.Exits))
	copy(exits, a.exits)
	for _, x := range o.Exits {
		switch i := a.of(x.Rank); {
		case i >= 0 && x.Status != job.Lost:
			x.Stopped = x.Stopped || a.exits[i].Stopped
			exits[i] = x
		case i < 0:
			x.Stopped = x.Stopped || x.Status == job.Lost && a.stopping
			exits = append(exits, x)
		}
	}
	o.Exits = exits
	return o
}

// controllerGone returns the cause of an attempt that ended because its controller died.
func controllerGone(text string) job.Cause {
	return job.Cause{Category: job.HostLost, Signature: "controller-gone", Rank: -1, Confidence: 1, Text: text, Retry: job.RetryAgain}
}

// cause returns the cause of an adopted gang that did not succeed. This is the cause in the journal, or the
// death of the controller. It returns false if neither applies.
func (a *adopted) cause(o job.Outcome, lost error) (job.Cause, bool) {
	if a.known != nil {
		return *a.known, true
	}
	c := controllerGone("")
	_, hung := hungBy(lost)
	switch left, ok := lost.(controllerDied); {
	case ok && !a.failed:
		c.Text = left.Error() + ", so the gang was ended"
	case hung:
		return job.Cause{}, false
	case len(o.AgentsEnded) > 0 && !a.failed:
		c.Text = fmt.Sprintf("the controller died, and when another took over the ranks on %s had ended: agents end them %s after their last contact with a controller, or at once on its own machine",
			strings.Join(o.AgentsEnded, ", "), a.grace)
		c.Hint = "gangrun attach within that time continues with the ranks on other hosts; --orphan-grace sets the time"
	default:
		return job.Cause{}, false
	}
	return c, true
}
