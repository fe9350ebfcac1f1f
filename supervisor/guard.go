package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch"
)

// stacksLimit bounds the collection of stacks before a hung gang is ended.
const stacksLimit = 10 * time.Second

// Hung is the cause (see context.Cause) of a gang's context that ends because the gang hangs.
type Hung struct{ Report job.HangReport }

// Error says which progress is missing, and which ranks hold up the gang.
func (e Hung) Error() string { return "the gang hangs: " + e.Report.Text }

// guard watches a gang for hangs and stragglers. It ends the gang if it hangs, or if the gang has a straggler
// and the job's policy wants another attempt.
type guard struct {
	*loop
	number int
	gang   context.Context         // ends when gangrun wants the gang to end
	end    context.CancelCauseFunc // ends gang

	mu       sync.Mutex // guards the fields below
	watch    *watch.Watch
	peers    *watch.Peers
	acting   bool // a hang was found
	watching sync.WaitGroup
}

// newGuard returns the guard of an attempt.
func (l *loop) newGuard(end *gangEnd, number int) *guard {
	g := &guard{loop: l, number: number, gang: end.wish, end: end.decide, watch: watch.New(time.Duration(l.spec.HangTimeout), l.learnt)}
	window := time.Duration(l.spec.StragglerWindow)
	if len(l.spec.Apps) > 1 {
		window = 0 // ranks of several programs do different work
	}
	g.peers = watch.NewPeers(window, l.spec.Ranks)
	return g
}

// over returns a function that handles the gang's events. The guard keeps pulses, and passes all other events
// to emit.
func (g *guard) over(emit func(job.Event)) func(job.Event) {
	return func(e job.Event) {
		if e.Kind == job.KindCurve && e.Curve != nil {
			e.Attempt = g.number
			g.curve(e, emit)
			return
		}
		var slow []job.StragglerReport
		var lasting *job.StragglerReport
		g.mu.Lock()
		switch {
		case e.Kind == job.KindPulse:
			g.watch.Add(*e.Pulses, time.Now())
			g.look()
			slow, lasting = g.peers.Add(*e.Pulses), g.peers.Lasting()
		case e.Kind == job.KindExit && e.Exit != nil:
			g.watch.Exit(e.Exit.Rank)
			g.peers.Exit()
		}
		g.mu.Unlock()
		g.tell(slow)
		if lasting != nil {
			g.leave(*lasting)
		}
		if e.Kind == job.KindPulse {
			if g.Pulse != nil {
				g.Pulse(g.number, *e.Pulses)
			}
			return
		}
		emit(e)
	}
}

// look checks for a hang and starts to act on it. The caller holds g.mu.
func (g *guard) look() {
	if g.acting || g.gang.Err() != nil {
		return
	}
	if h := g.watch.Hang(); h != nil {
		g.acting = true
		g.watching.Go(func() { g.act(*h) })
	} else if g.Stacks != nil && g.watch.Doubtful() {
		g.acting = true
		g.watching.Go(g.inspect)
	}
}

// inspect collects the stacks of a gang that prints nothing, and ends the gang if they show that it hangs.
func (g *guard) inspect() {
	stacks := g.Stacks(g.gang, stacksLimit)
	g.mu.Lock()
	h := g.watch.Judge(stacks)
	g.acting = h != nil
	g.mu.Unlock()
	if h != nil && g.gang.Err() == nil {
		g.conclude(*h, stacks)
	}
}

// conclude ends a gang that hangs.
func (g *guard) conclude(h job.HangReport, stacks []job.RankStack) {
	for i := range stacks {
		stacks[i].Record = nil // the report of the hang has what the records show
	}
	if len(stacks) > 0 {
		g.emit(job.Event{Kind: job.KindStacks, Attempt: g.number, Stacks: stacks})
	}
	g.emit(job.Event{Kind: job.KindHang, Attempt: g.number, Hang: &h, Text: h.Text})
	g.end(Hung{h})
}

// close waits for the goroutines that the guard has started. It is called after the gang has ended.
func (g *guard) close() {
	g.watching.Wait()
	g.learnt = g.watch.Learnt()
}

// act collects the stacks of a gang that seems to hang. It then ends the gang, unless the gang has made
// progress in the meantime.
func (g *guard) act(h job.HangReport) {
	var stacks []job.RankStack
	if g.Stacks != nil {
		g.note("%s: looking where the ranks are", watch.Words(h, time.Now()))
		stacks = g.Stacks(g.gang, stacksLimit)
	}
	g.mu.Lock()
	still := g.watch.Still(h)
	if still {
		h = g.watch.Blame(h, stacks)
	} else {
		g.acting = false
	}
	g.mu.Unlock()
	if g.gang.Err() != nil {
		return
	}
	if !still {
		g.note("the gang goes on")
		return
	}
	g.conclude(h, stacks)
}

// byWatch reports whether err says that the guard has ended the gang.
func byWatch(err error) bool {
	var hung Hung
	var slow Straggled
	var early StoppedEarly
	return errors.As(err, &hung) || errors.As(err, &slow) || errors.As(err, &early)
}

// hungBy returns the report of the hang for which gangrun ended a gang. ok is false if that is not why the
// gang ended.
func hungBy(lost error) (job.HangReport, bool) {
	var hung Hung
	ok := errors.As(lost, &hung)
	return hung.Report, ok
}

// hostsOf returns the host of each rank.
func hostsOf(o job.Outcome) map[int]string {
	all := map[int]string{}
	for _, x := range o.Exits {
		all[x.Rank] = x.Host
	}
	return all
}
