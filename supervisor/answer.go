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
)

// request is what is known of the last request for a checkpoint.
type request struct {
	before *job.Checkpoint // the newest good one when the ranks were asked; nil if there was none
	waited time.Duration   // until gangrun ended them; 0 if they ended before
}

// asking returns the event that the ranks are asked for a checkpoint. It has an order to stop if the user ends the run: a
// controller that takes over then carries it out.
func (g *gangEnd) asking(s job.Spec) job.Event {
	e := job.Event{
		Kind: job.KindNote, Attempt: g.number,
		Text: fmt.Sprintf("asking the ranks for a checkpoint (%s), and waiting for it for up to %s", s.BeforeStop, s.BeforeStopWait),
	}
	var by Interrupted
	if errors.As(context.Cause(g.wish), &by) {
		e.Stop = job.StopOrder
	}
	return e
}

// noWait is why nobody waits any longer for a checkpoint.
type noWait string

// Error says why.
func (n noWait) Error() string { return string(n) }

// follow watches what happens while the ranks are waited for: skip ends the wait. A call of stop ends the watch.
func (l *loop) follow(ctx context.Context, g *gangEnd, skip context.CancelCauseFunc) (stop func()) {
	g.mu.Lock()
	g.skip, g.heard = skip, map[string]bool{}
	g.mu.Unlock()
	var watching sync.WaitGroup
	if g.run.Err() == nil { // the end is not that of the run
		watching.Go(func() {
			select {
			case <-ctx.Done():
			case <-g.run.Done():
				l.again(g, skip)
			}
		})
	}
	return func() { skip(nil); watching.Wait() }
}

// again acts on the end of the run, which has come while the ranks are waited for already.
func (l *loop) again(g *gangEnd, skip context.CancelCauseFunc) {
	var by Interrupted
	var limit TimeLimit
	switch cause := context.Cause(g.run); {
	case errors.As(cause, &limit):
		skip(noWait(limit.Error()))
	case errors.As(cause, &by) && by.Now:
		skip(noWait(by.Error()))
	case errors.As(cause, &by):
		l.emit(job.Event{
			Kind: job.KindNote, Attempt: g.number, Stop: job.StopOrder,
			Text: fmt.Sprintf("the run is being ended already: the ranks have up to %s, in all, for a checkpoint; a second signal, or gangrun stop --now, ends them at once", l.spec.BeforeStopWait),
		})
	}
}

// signalled notes how many ranks of a host the signal that asks for a checkpoint went to. If no rank of the gang handles it,
// nobody waits.
func (g *gangEnd) signalled(e job.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.skip == nil || e.Reached == nil {
		return
	}
	if g.heard[e.Host] = g.heard[e.Host] || *e.Reached > 0; len(g.heard) < g.hosts {
		return
	}
	for _, any := range g.heard {
		if any {
			return
		}
	}
	g.skip(noWait("no rank handles the signal"))
}

// answered marks the ranks that have ended because they were asked for a checkpoint as ended by gangrun. A gang that has
// made all its steps has ended by itself. A rank that has ended in any other way has failed. Many programs exit with code 1
// whenever they end early: that is an answer if nothing was found that explains it, and there is a new good checkpoint.
func (l *loop) answered(ctx context.Context, g *gangEnd, o job.Outcome, ranks int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked || o.Good(ranks) && l.complete() {
		return
	}
	code1 := false
	for i, x := range o.Exits {
		if x.Stopped || g.gone[x.Rank] {
			continue
		}
		o.Exits[i].Stopped = earlystop.Answers(x, l.spec.BeforeStop)
		code1 = code1 || earlystop.MayAnswer(x)
	}
	if !code1 || slices.ContainsFunc(o.Exits, func(x job.Exit) bool { return !x.Good() && !x.Stopped && !earlystop.MayAnswer(x) }) {
		return
	}
	if c := l.cause(o, job.EndedNot, nil); category(c) != job.Unknown || !l.renewed(ctx) {
		return
	}
	for i, x := range o.Exits {
		o.Exits[i].Stopped = x.Stopped || earlystop.MayAnswer(x) && !g.gone[x.Rank]
	}
}

// renewed reports whether there is a new good checkpoint since the ranks were asked for one.
func (l *loop) renewed(ctx context.Context) bool {
	if l.resume.request == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	c, ok := l.newest(ctx)
	return ok && fresh(l.resume.request.before, c)
}

// kept reports whether a run that was stopped early has the checkpoint for which it was worth running: the newest was written
// when the verdict was already true, or because the ranks were asked for one. It is not if what the ranks have written when
// they were asked is broken.
func (l *loop) kept() bool {
	c := l.resume.newest
	if c == nil {
		return false
	}
	if r := l.resume.request; r != nil && (fresh(r.before, c) || l.resume.broken) {
		return fresh(r.before, c)
	}
	l.mu.Lock()
	r := l.folder.Report()
	l.mu.Unlock()
	for _, v := range r.Last().Curves {
		if v.Action == job.EarlyEnd {
			return earlystop.Since(*c, v, r.Started)
		}
	}
	return false
}

// failedAnswer returns the verdict on an attempt that gangrun was stopping early, and that has failed by itself meanwhile.
// It is not ok for other attempts. A model that has diverged is another matter: its job may go back to a checkpoint.
func failedAnswer(o job.Outcome, cause job.Cause, lost error) (v job.Verdict, ok bool) {
	var curve StoppedEarly
	if !errors.As(lost, &curve) || earlystop.Spoils(curve.Verdict.Kind) || !failedByItself(o) {
		return v, false
	}
	return stop("%s while gangrun stopped the run early (%s)", category(cause), curve.Verdict.Kind), true
}
