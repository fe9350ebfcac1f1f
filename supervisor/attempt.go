package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/earlystop"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/retry"
	"github.com/gangrun/gangrun/supervisor/secret"
	"github.com/gangrun/gangrun/supervisor/watch"
)

// attempt starts the gang once and decides what follows its end. It returns nil, after the
// back-off, if the gang is to be started again.
func (l *loop) attempt(ctx context.Context, number int) *end {
	lease, e := l.place(ctx, number)
	if e != nil {
		return e
	}
	outcome, e, lost := l.launch(ctx, number, lease)
	if e != nil {
		return e
	}
	return l.judge(ctx, number, lease.Placement, l.resume.newest, outcome, lost)
}

// judge decides what follows the end of an attempt. resumed is the checkpoint from which the attempt started.
// judge returns nil, after the back-off, if the gang is to be started again.
func (l *loop) judge(ctx context.Context, number int, placement job.Placement, resumed *job.Checkpoint, outcome job.Outcome, lost error) (e *end) {
	if endedWell(outcome, len(placement.Ranks)) {
		const reason = "every rank ended well"
		l.emit(job.Event{Kind: job.KindVerdict, Attempt: number, Verdict: &job.Verdict{Action: job.Succeed, Reason: reason}})
		return &end{ending: exitcode.Ending{State: job.StateSucceeded}, text: reason}
	}

	ended := l.endedBy(ctx, outcome, lost)
	cause := l.cause(outcome, ended, lost)
	if l.adopted.known == nil && ended != job.EndedNot && l.spec.CheckpointDir != "" {
		cause.Hint = l.resumeHint(cause)
	}
	last := retry.Past{
		Cause:   cause,
		From:    l.resume.best,
		Resumed: resumed,
		Step:    l.step(),
		Devices: devicesOf(placement, cause.Rank),
	}
	earlier := l.before()
	if retry.CategoryOf(cause) == job.ModelDiverged && l.policy(ctx).Diverge > 0 {
		var curve StoppedEarly
		if errors.As(lost, &curve) {
			last.Spoilt = l.spoilt(ctx, earlier, curve.Verdict)
		}
	}
	if l.adopted.known == nil {
		l.emit(job.Event{Kind: job.KindCause, Attempt: number, Cause: &cause}) // before the search, which may take long
	}
	l.lookAgain(ctx, number, append(slices.Clip(earlier), last))
	last.Saved, last.Next = l.resume.best, l.resume.newest
	l.avoid.lost = lostHosts(outcome)
	l.past = append(l.past, last)
	for _, u := range outcome.Unreaped {
		l.avoid.barred = union(l.avoid.barred, job.Excluded{Hosts: []string{u.Host}})
	}

	var verdict job.Verdict
	if ended != job.EndedNot {
		during := " while the gang was up"
		if all := len(placement.Hosts); all > 0 && len(outcome.AgentsEnded) == all {
			during = " after its controller had died; nothing of its gang was left"
		}
		e = l.interrupted(ctx, during)
		verdict = job.Verdict{Action: job.Stop, Reason: e.text}
	} else {
		var failed bool
		if verdict, failed = failedAnswer(outcome, cause, lost); !failed {
			verdict = l.policy(ctx).Decide(earlier, last, time.Now())
		}
	}
	l.emit(job.Event{Kind: job.KindVerdict, Attempt: number, Verdict: &verdict})
	switch {
	case e != nil:
		return e
	case verdict.Action == job.Restart:
		l.avoid.exclusions = append(l.avoid.exclusions, exclusion{verdict.Exclude, time.Now()})
		return l.backoff(ctx, time.Duration(verdict.Wait))
	}
	return ending(verdict, cause)
}

// ending returns the end of a run after a verdict that does not restart the gang.
func ending(verdict job.Verdict, cause job.Cause) *end {
	e := &end{ending: exitcode.Ending{State: job.StateFailed, Budget: verdict.Budget}, text: verdict.Reason}
	if yes, worth := earlystop.By(cause); yes {
		e.ending.State, e.ending.Worth = job.StateStoppedEarly, worth
	}
	if verdict.Deterministic {
		e.ending.Action = job.RetryNever
	}
	return e
}

// launch runs the gang at its place and then releases the place. lost says why the gang was ended early: the gang lost
// its lease, the guard has ended it, or the controller died. lost is nil if the gang ended by itself, or if the run had
// to end anyway.
func (l *loop) launch(ctx context.Context, number int, lease Lease) (outcome job.Outcome, e *end, lost error) {
	defer lease.Release()
	logs, err := l.info.LogDir(number)
	if err != nil {
		return job.Outcome{}, l.failed("log directory", err, number), nil
	}
	l.emit(job.Event{Kind: job.KindPlaced, Attempt: number, Placement: &lease.Placement, Explanation: &lease.Explanation})
	l.state(job.StateLaunching, "")
	l.learnPast(ctx)
	l.emit(job.Event{Kind: job.KindAttempt, Attempt: number, ResumeFrom: l.resume.path(), Checkpoint: l.resume.newest, LogDir: logs})

	l.withdraw(ctx) // remove what a controller that died has left
	defer l.withdraw(context.WithoutCancel(ctx))
	end := l.endOf(ctx, number, lease.Placement, nil)
	defer end.release()
	defer watchLease(ctx, lease.Held, end.now)()
	return l.stay(ctx, end, l.order(number, lease.Placement, l.resume.path(), logs), l.watch(end, number))
}

// watchLease ends the gang when its lease is lost, until stop is called. A lease that ends because
// ctx has ended is not lost.
func watchLease(ctx, held context.Context, end context.CancelCauseFunc) (stop func() bool) {
	return context.AfterFunc(held, func() {
		if ctx.Err() == nil {
			end(LeaseLost{context.Cause(held)})
		}
	})
}

// order returns the attempt for the launcher.
func (l *loop) order(number int, placement job.Placement, from, logs string) job.Attempt {
	return job.Attempt{
		Run:           l.info.ID,
		Number:        number,
		Command:       l.spec.Command,
		Workdir:       l.spec.RankDir(),
		Box:           l.spec.Box(),
		Placement:     placement,
		Env:           l.env(),
		CheckpointDir: l.spec.CheckpointDir,
		ResumeFrom:    from,
		StopFile:      l.spec.StopFile(l.info.ID),
		LogDir:        logs,
		Grace:         l.spec.Grace,
		Retries:       l.spec.Retries,
		Stdin:         l.spec.Stdin,
		TTY:           l.spec.TTY,
		Show:          l.spec.Output,
		Progress:      l.spec.Progress,
		MPI:           l.spec.MPI,
		EnvCompat:     l.spec.EnvCompat,
		Apps:          l.spec.Apps,
		InitTimeout:   l.spec.InitTimeout,
		Faulthandler:  l.spec.Faulthandler,
		Pulses:        l.spec.Watch != job.WatchOff,
		Saves:         l.spec.Watch != job.WatchOff && l.spec.CheckpointDir != "",
		OwnDirs:       l.spec.Preflight == job.PreflightOff,
		GPUVisibility: l.spec.GPUVisibility,
		Hints:         l.hints(placement),
	}
}

// stay lets the launcher run the gang to its end.
func (l *loop) stay(ctx context.Context, end *gangEnd, a job.Attempt, emit func(job.Event)) (outcome job.Outcome, e *end, lost error) {
	g := l.newGuard(end, a.Number)
	outcome, err := l.Launcher.Run(end.gang, a, g.over(emit))
	g.close()
	l.resume.request = end.request.Load()
	l.answered(ctx, end, outcome, len(a.Placement.Ranks))
	if a.Adopt {
		outcome = l.adopted.complete(outcome)
	}
	l.emit(job.Event{Kind: job.KindOutcome, Attempt: a.Number, Outcome: &outcome})
	if err != nil && !(end.gang.Err() != nil && onlyEnded(err)) {
		return outcome, l.failed("launch", err, a.Number), nil
	}
	var gone LeaseLost
	var left controllerDied
	switch cause := end.cause(); {
	case ctx.Err() != nil && !l.remains(ctx, cause):
	case byWatch(cause):
		lost = cause
	case errors.As(cause, &gone):
		lost = gone
	case errors.As(cause, &left):
		lost = left
	}
	return outcome, nil, lost
}

// watch returns a function that forwards a gang's events and emits the states that follow from
// them. If gangrun ends the gang, the cause of end is the reason of a stop.
func (l *loop) watch(end *gangEnd, number int) func(job.Event) {
	stopping := false
	return func(e job.Event) {
		e.Attempt = number
		if l.told.unread.Add(e) {
			l.note("%s", watch.UnreadText(l.spec.Progress))
		}
		if e.Kind == job.KindUnread {
			return
		}
		var lost LeaseLost
		var left controllerDied
		switch cause := end.cause(); {
		case e.Kind != job.KindStop || stopping:
		case errors.As(cause, &lost), errors.As(cause, &left), byWatch(cause) && e.Stop != job.StopFailure:
			e.Stop, e.Text = job.StopFailure, cause.Error()
		case cause != nil && e.Stop == job.StopOrder:
			e.Text = cause.Error()
		}
		if e.Kind == job.KindStop {
			e.Order = order.Of(end.cause())
			end.failing.Store(end.failing.Load() || e.Order == nil)
		}
		l.emit(e)
		switch e.Kind {
		case job.KindSignal:
			end.signalled(e)
		case job.KindAllStarted:
			if !stopping {
				l.state(job.StateRunning, "")
			}
		case job.KindSave:
			l.advise(number)
		case job.KindStop:
			if !stopping {
				l.state(job.StateStopping, e.Text)
			}
			stopping = true
		}
	}
}

// onlyEnded reports whether a launcher's error says only that its context was done.
func onlyEnded(err error) bool {
	var lost LeaseLost
	var left controllerDied
	return byWatch(err) || order.Of(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &lost) || errors.As(err, &left)
}

// endedBy returns why gangrun ended the gang together with its run. If a rank had failed by itself before, the
// attempt counts as failed. If gangrun had begun to stop the run early, that remains the reason.
func (l *loop) endedBy(ctx context.Context, o job.Outcome, lost error) job.Ended {
	if ctx.Err() == nil || failedByItself(o) || l.remains(ctx, lost) {
		return job.EndedNot
	}
	return l.why(ctx)
}

// endedWell reports whether the gang succeeded. A rank that gangrun ended did not succeed, even if
// it caught SIGTERM and exited with 0.
func endedWell(o job.Outcome, ranks int) bool {
	return o.Good(ranks) && !slices.ContainsFunc(o.Exits, func(x job.Exit) bool { return x.Stopped })
}

// failedByItself reports whether a rank that had started failed before gangrun
// ended the gang.
func failedByItself(o job.Outcome) bool {
	return slices.ContainsFunc(o.Exits, func(x job.Exit) bool {
		return !x.Good() && !x.Stopped && x.Status != job.Unstarted
	})
}

// cause returns why the gang did not succeed.
func (l *loop) cause(o job.Outcome, ended job.Ended, lost error) job.Cause {
	var curve StoppedEarly
	early := errors.As(lost, &curve) && !failedByItself(o)
	left, ok := l.adopted.cause(o, lost)
	if ok && ended == job.EndedNot && (l.adopted.known != nil || !early) {
		return left
	}
	if h, ok := hungBy(lost); ok && !failedByItself(o) {
		if c, ok := l.raised(h, o); ok {
			return c
		}
		return watch.HangCause(h, hostsOf(o), l.spec.Faulthandler)
	}
	var slow Straggled
	if errors.As(lost, &slow) && !failedByItself(o) {
		return watch.StragglerCause(slow.Report)
	}
	if early {
		return earlystop.Cause(curve.Verdict)
	}
	if lost != nil && !failedByItself(o) {
		return job.Cause{
			Category:   job.LaunchError,
			Signature:  "lease-lost",
			Rank:       -1,
			Confidence: 1,
			Text:       lost.Error() + ", so the gang was ended",
			Hint:       `"gangrun leases" tells who holds which GPU`,
			// The next attempt takes a lease of its own, so a restart is safe.
			Retry: job.RetryAgain,
		}
	}
	lines := o.Lines
	if secret.Unknown(l.spec) {
		lines = nil // the secrets are not known
	}
	c := l.Diagnose(job.Evidence{Ranks: len(o.Exits), Outcome: o, Lines: lines, Ended: ended, Activity: l.activity(), Command: l.spec.Command})
	if len(o.AgentsEnded) > 0 && ok && l.adopted.known == nil {
		c.Text = left.Text // gangrun had no rank to end there
	}
	if c.Category == "" && ended == job.EndedNot && l.adopted.stopping && !failedByItself(o) {
		c = controllerGone("gangrun was ending the gang when the controller died, and its reason is not known")
	}
	if c.Retry == "" {
		c.Retry = retry.CategoryOf(c).Action()
	}
	c.Evidence = append(l.signs(c.Host), c.Evidence...) // the decisive line remains the last one
	return c
}

// raised returns the Python exception that made a gang hang. A rank that holds up the others has printed it
// before it stopped printing. ok is false if there is no such exception.
func (l *loop) raised(h job.HangReport, o job.Outcome) (c job.Cause, ok bool) {
	guilty := func(rank int) bool { return slices.Contains(h.Ranks, rank) && slices.Contains(h.Raised, rank) }
	if !slices.ContainsFunc(h.Ranks, guilty) || secret.Unknown(l.spec) {
		return job.Cause{}, false
	}
	lines := slices.DeleteFunc(slices.Clone(o.Lines), func(line job.Line) bool { return !guilty(line.Rank) })
	c = l.Diagnose(job.Evidence{Ranks: len(o.Exits), Lines: lines, Command: l.spec.Command})
	if c.Category == "" || c.Rank < 0 {
		return job.Cause{}, false
	}
	c.Host = hostsOf(o)[c.Rank]
	c.Text += "; it did not end: " + h.Why
	if c.Retry == "" {
		c.Retry = retry.CategoryOf(c).Action()
	}
	return c, true
}

// maxSigns is the maximum number of signs of ill health that become evidence.
const maxSigns = 5

// signs returns the latest signs of ill health of a host in the current attempt. If host is "", it returns
// those of all hosts. It leaves out notes.
func (l *loop) signs(host string) []job.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := []job.Line{}
	for _, s := range slices.Backward(l.folder.Report().Last().Signs) {
		if s.Serious() && (host == "" || s.Host == host) && len(lines) < maxSigns {
			lines = append(lines, job.Line{Source: job.SourceAgent, Host: s.Host, Rank: -1, Time: s.Time, Text: s.Text})
		}
	}
	slices.Reverse(lines)
	return lines
}

// step returns the last step that the current attempt reported.
func (l *loop) step() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.folder.Report().Last().Step
}

// activity returns what the ranks of the current attempt were doing when gangrun decided to end the gang. Ranks
// that were asked for a checkpoint make no steps while they write it, so this time does not count.
func (l *loop) activity() []job.Activity {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.folder.Report().Last().Activity)
	if r := l.resume.request; r != nil {
		for i := range all {
			all[i] = earlystop.Before(all[i], job.Duration(r.waited))
		}
	}
	return all
}

// devicesOf returns the IDs of the GPUs of a rank.
func devicesOf(p job.Placement, rank int) []string {
	i := slices.IndexFunc(p.Ranks, func(r job.Rank) bool { return r.Rank == rank })
	if i < 0 {
		return nil
	}
	var ids []string
	for _, uuid := range p.Ranks[i].Devices {
		ids = append(ids, job.DeviceID(p.Ranks[i].Host, uuid))
	}
	return ids
}
