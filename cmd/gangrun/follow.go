package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gangrun/gangrun/internal/growing"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/supervisor"
)

// onlooker shows a run whose controller is another process.
type onlooker struct {
	run   home.Run
	show  *view.Live
	heard atomic.Int64 // events and pieces of output

	// Of the attempt that is shown, for the one goroutine that reads its logs.
	attempt int
	tails   []tail
	reader  growing.Reader
	watch   *growing.Watch
}

// follow shows a run from now on to its end and returns its report. It ends
// before where the user has seen enough, or the controller is gone.
func follow(run home.Run, asJSON bool) (supervisor.Report, error) {
	past, skipped, err := record.Events(run)
	if err != nil {
		return supervisor.Report{}, err
	}
	spec := record.Spec(past)
	if spec == nil {
		return supervisor.Report{}, record.NoSpec(run, past, skipped)
	}
	out, errs := terms{asJSON: asJSON}.streams()
	o := &onlooker{run: run, show: view.NewLive(view.Options{Spec: *spec, Run: run, Screen: screen.New(screen.Options{
		Out: out, Err: errs, Ranks: spec.Ranks, Hosts: severalHosts(past), Prefix: true,
	})})}
	for i, e := range past {
		if i == 0 {
			o.show.Event(e)
		} else {
			o.show.Fold(e)
		}
	}
	ctx, stop := interrupt.Context()
	defer stop()
	err = o.look(ctx, len(past))

	// A second signal ends the wait for a terminal that is stopped.
	stop()
	hurried, hurry := interrupt.Context()
	defer hurry()
	report := o.show.Report()
	switch {
	case errors.As(err, new(interrupt.Signal)):
		o.show.Say(fmt.Sprintf("detached: run %[1]s goes on; gangrun attach %[1]s shows it again, gangrun stop %[1]s ends it", run.ID))
	case errors.Is(err, errControllerGone):
		err = lost(run)
	}
	o.show.FlushLines(hurried)
	view.Finish(hurried, func() {
		o.show.Screen.Status("")
		_ = o.show.Screen.Close()
		if err == nil {
			o.show.Closing(report)
		}
	})
	return report, err
}

// severalHosts reports whether ranks have to be told apart by their hosts.
func severalHosts(events []job.Event) bool {
	return slices.ContainsFunc(events, func(e job.Event) bool {
		return e.Placement != nil && len(e.Placement.Hosts) > 1 || e.Spec != nil && (e.Spec.Loopback > 1 || e.Spec.Hosts != "" || e.Spec.Hostfile != "")
	})
}

// look shows what comes behind the first events until the run has ended. The
// error is why it has not.
func (o *onlooker) look(ctx context.Context, known int) error {
	if o.show.Report().State.Final() {
		o.parting(ctx)
		return nil
	}
	o.watch = growing.NewWatch()
	defer o.watch.Close()
	o.open(ctx, true)
	if o.attempt > 0 {
		o.show.Say("attempt " + fmt.Sprint(o.attempt) + " is on its way; gangrun logs " + o.run.ID + " shows what its ranks have printed so far")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	growth, ended := context.WithCancel(ctx)
	defer ended()
	shown := make(chan struct{})
	wg.Go(func() { o.show.Refresh(ctx) })
	wg.Go(func() { o.guard(ctx, cancel) })
	wg.Go(func() { defer close(shown); o.read(ctx, growth) })
	number := 0
	_, err := journal.Follow(ctx, o.run.JournalPath(), 0, func(e job.Event) {
		o.heard.Add(1)
		if number++; number > known {
			o.show.Event(e)
			if e.Kind == job.KindAttempt {
				o.watch.Touch() // its logs are elsewhere
			}
		}
	})
	if err == nil {
		o.parting(ctx)
	}
	ended() // what the ranks have printed last is in their logs
	select {
	case <-shown:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	if err == nil {
		wg.Wait()
	} // else a terminal that is stopped may hold them up for as long as it likes
	return err
}

// partingLimit bounds the wait for a controller whose run has ended to write its
// report: its terminal may hold it up for longer.
const partingLimit = 3 * time.Second

// parting waits until the controller of a run that has ended is gone.
func (o *onlooker) parting(ctx context.Context) {
	c := o.show.Report().Controller
	limit := time.NewTimer(partingLimit)
	defer limit.Stop()
	tick := time.NewTicker(partingLimit / 100)
	defer tick.Stop()
	for c != nil {
		if alive, _ := home.Alive(*c); !alive {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// guardEvery is how often it is looked whether a run's controller lives.
const guardEvery = 500 * time.Millisecond

// guard ends the watch when the run's controller is gone and the run has not
// ended. Of one that cannot be seen from here it is told again that it may be gone.
func (o *onlooker) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	var doubt doubt
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if c := o.show.Report().Controller; c != nil {
			alive, known := home.Alive(*c)
			if !known {
				held, seen := o.run.Controlled()
				if silent, due := doubt.due(time.Now(), o.heard.Load(), held || !seen); due {
					o.show.Say(fmt.Sprintf("note: nothing was heard of the run for %s, and its controller, %s, %s; %s", silent.Round(time.Second), nameOf(*c), controlWords(held, seen), ifGone(o.run)))
				}
			}
			if alive || !known {
				continue
			}
		}
		if s, err := o.run.Summary(); err == nil && s.State == job.StateLost {
			cancel(errControllerGone)
			return
		}
	}
}
