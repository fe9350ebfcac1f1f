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
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/retry"
)

// request is what gangrun knows of the last request for a checkpoint.
type request struct {
	before *job.Checkpoint // the newest good checkpoint when the ranks were asked; nil if there was none
	waited time.Duration   // time until gangrun ended the ranks; 0 if they ended before
	found  *job.Checkpoint // complete checkpoint that the ranks have written; nil if none was found
}

// atOnce tells a user how to end ranks at once that gangrun is already ending.
const atOnce = "a second signal, or gangrun stop --now, ends them at once"

// asking returns the event that the ranks are asked for a checkpoint. If gangrun is ending the run, the event
// has the order to do so. A controller that takes over then carries out the order.
func (g *gangEnd) asking(s job.Spec) job.Event {
	e := job.Event{
		Kind: job.KindNote, Attempt: g.number,
		Text: fmt.Sprintf("asking the ranks for a checkpoint (%s), and waiting for it for up to %s", s.BeforeStop, s.BeforeStopWait),
	}
	if e.Order = order.Of(context.Cause(g.wish)); e.Order != nil {
		e.Stop = job.StopOrder
		if e.Order.Ended == job.EndedCancelled {
			e.Text += "; " + atOnce
		}
	}
	return e
}

// noWait is the reason for which gangrun no longer waits for a checkpoint.
type noWait string

// Error says why.
func (n noWait) Error() string { return string(n) }

// follow watches for a reason to end the wait for a checkpoint early, and calls skip with it. stop ends the
// watch.
func (l *loop) follow(ctx context.Context, g *gangEnd, skip context.CancelCauseFunc) (stop func()) {
	g.mu.Lock()
	g.skip, g.heard = skip, map[string]bool{}
	g.mu.Unlock()
	run, user := g.run.Done(), l.info.User.Done()
	if g.run.Err() != nil && !byWatch(context.Cause(g.wish)) { // the gang ends because the run does
		run = nil
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			var limit order.TimeLimit
			var by order.Interrupted
			select {
			case <-ctx.Done():
				return
			case <-run:
				if run = nil; errors.As(context.Cause(g.run), &limit) {
					skip(noWait(limit.Error()))
				}
			case <-user:
				if user = nil; errors.As(context.Cause(l.info.User), &by) && by.Now {
					skip(noWait(by.Error()))
				}
			}
		}
	})
	return func() {
		skip(nil)
		watching.Wait()
		g.mu.Lock()
		g.skip = nil
		g.mu.Unlock()
	}
}

// hear waits until the user ends the run. If gangrun is already ending the gang then, hear tells the user how to end
// the ranks at once. If the user's order becomes the reason for the end of the run, hear adds it to the journal. hear
// returns when over is closed.
func (l *loop) hear(g *gangEnd, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-l.info.User.Done():
	}
	var by order.Interrupted
	if !errors.As(context.Cause(l.info.User), &by) || by.Now || !g.ending() {
		return
	}
	e := job.Event{Kind: job.KindNote, Attempt: g.number, Text: "the gang is being ended already: " + atOnce}
	g.mu.Lock()
	if g.skip != nil {
		e.Text = fmt.Sprintf("the gang is being ended already: the ranks have up to %s, in all, for a checkpoint; %s", l.spec.BeforeStopWait, atOnce)
	}
	g.mu.Unlock()
	if why := context.Cause(g.run); why == nil || errors.As(why, &by) { // nil: it ends just now
		e.Stop, e.Order = job.StopOrder, order.Of(by)
	}
	l.emit(e)
}

// signalled notes how many ranks of a host handle the signal that asks for a checkpoint. If no rank of the gang
// handles it, signalled ends the wait for a checkpoint.
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

// answered marks the ranks as ended by gangrun that have ended because they were asked for a checkpoint. A gang
// that has made all its steps has ended by itself. A rank that has ended in any other way has failed. Many
// programs exit with code 1 whenever they end early. gangrun takes this as an answer if there is a new good
// checkpoint and if it finds no other explanation.
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
	if c := l.cause(o, job.EndedNot, nil); retry.CategoryOf(c) != job.Unknown || !l.renewed(ctx) {
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

// kept reports whether a run that was stopped early has a checkpoint from which somebody can use its result.
// The newest checkpoint must have been written when the verdict was already true, or because the ranks were
// asked for one. kept returns false if the checkpoint that the ranks have written when they were asked is
// broken.
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

// failedAnswer returns the verdict on an attempt that failed by itself while gangrun was stopping it early. ok
// is false for other attempts. ok is also false if the model has diverged, because then the job may go back to
// an earlier checkpoint.
func failedAnswer(o job.Outcome, cause job.Cause, lost error) (v job.Verdict, ok bool) {
	var curve StoppedEarly
	if !errors.As(lost, &curve) || earlystop.Spoils(curve.Verdict.Kind) || !failedByItself(o) {
		return v, false
	}
	return retry.Stop("%s while gangrun stopped the run early (%s)", retry.CategoryOf(cause), curve.Verdict.Kind), true
}
