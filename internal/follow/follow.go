// Package follow shows a run that another process controls, from the journal and the logs of the run.
package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/growing"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// follower shows a run whose controller is another process.
type follower struct {
	run   home.Run
	show  *view.Live
	heard atomic.Int64 // number of events and pieces of output so far

	// Only the goroutine that reads the logs of the shown attempt uses the fields below.
	attempt int
	tails   []tail
	reader  growing.Reader
	watch   *growing.Watch
}

// Follow shows a run from now on to its end and returns its report. The error is an
// interrupt.Signal if the user ends the command before the run ends. It is a GoneError if the
// run's controller is gone.
func Follow(run home.Run, out, errs screen.Stream) (runreport.Report, error) {
	past, skipped, err := record.Events(run)
	if err != nil {
		return runreport.Report{}, err
	}
	spec := record.Spec(past)
	if spec == nil {
		return runreport.Report{}, record.NoSpec(run, past, skipped)
	}
	f := &follower{run: run, show: view.NewLive(view.Options{Spec: *spec, Run: run, Screen: screen.New(screen.Options{
		Out: out, Err: errs, Ranks: spec.Ranks, Hosts: severalHosts(past), Prefix: true,
	})})}
	for i, e := range past {
		if i == 0 {
			f.show.Event(e)
		} else {
			f.show.Fold(e)
		}
	}
	ctx, stop := interrupt.Context()
	defer stop()
	err = f.look(ctx, len(past))

	// A second signal ends the wait for a stopped terminal.
	stop()
	hurried, hurry := interrupt.Context()
	defer hurry()
	report := f.show.Report()
	switch {
	case errors.As(err, new(interrupt.Signal)):
		f.show.Say(fmt.Sprintf("detached: run %[1]s goes on; gangrun attach %[1]s shows it again, gangrun stop %[1]s ends it", run.ID))
	case errors.Is(err, ErrControllerGone):
		err = lost(run)
	}
	f.show.FlushLines(hurried)
	view.Finish(hurried, func() {
		f.show.Screen.Status("")
		_ = f.show.Screen.Close()
		if err == nil {
			f.show.Closing(report, nil)
		}
	})
	return report, err
}

// severalHosts reports whether the hosts of ranks must be shown to tell the ranks apart.
func severalHosts(events []job.Event) bool {
	return slices.ContainsFunc(events, func(e job.Event) bool {
		return e.Placement != nil && len(e.Placement.Hosts) > 1 || e.Spec != nil && (e.Spec.Loopback > 1 || e.Spec.Hosts != "" || e.Spec.Hostfile != "")
	})
}

// look shows everything after the first events until the run has ended. If the run has not ended, the error says why.
func (f *follower) look(ctx context.Context, known int) error {
	if f.show.Report().State.Final() {
		f.awaitController(ctx)
		return nil
	}
	f.watch = growing.NewWatch()
	defer f.watch.Close()
	f.open(ctx, true)
	if f.attempt > 0 {
		f.show.Say("attempt " + fmt.Sprint(f.attempt) + " is on its way; gangrun logs " + f.run.ID + " shows what its ranks have printed so far")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	growth, ended := context.WithCancel(ctx)
	defer ended()
	shown := make(chan struct{})
	wg.Go(func() { f.show.Refresh(ctx) })
	wg.Go(func() { f.guard(ctx, cancel) })
	wg.Go(func() { defer close(shown); f.read(ctx, growth) })
	number := 0
	_, err := journal.Follow(ctx, f.run.JournalPath(), 0, func(e job.Event) {
		f.heard.Add(1)
		if number++; number > known {
			f.show.Event(e)
			if e.Kind == job.KindAttempt {
				f.watch.Touch() // the logs are elsewhere
			}
		}
	})
	over := err == nil // a signal then only ends the waits
	if over {
		f.awaitController(ctx)
	}
	ended() // all output of the ranks is in their logs
	select {
	case <-shown:
	case <-ctx.Done():
	}
	hurried := ctx.Err() != nil
	if hurried && !over {
		err = context.Cause(ctx)
	}
	cancel(nil)
	if !hurried && err == nil {
		wg.Wait()
	} // otherwise a stopped terminal may delay them without limit
	return err
}

// controllerLimit limits the wait for the controller of a run that has ended. The controller still has to write its
// report. Its terminal may delay it for longer.
const controllerLimit = 3 * time.Second

// awaitController waits until the controller of a run that has ended is gone.
func (f *follower) awaitController(ctx context.Context) {
	c := f.show.Report().Controller
	limit := time.NewTimer(controllerLimit)
	defer limit.Stop()
	tick := time.NewTicker(controllerLimit / 100)
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

// guard ends the watch when the run's controller is gone but the run has not ended. It also warns if a controller on
// another host may be gone.
func (f *follower) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(presence.CheckEvery)
	defer tick.Stop()
	var silence presence.Silence
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if c := f.show.Report().Controller; c != nil {
			alive, known := home.Alive(*c)
			if !known {
				held, seen := f.run.Controlled()
				if silent, due := silence.Warn(time.Now(), f.heard.Load(), held || !seen); due {
					f.show.Say(fmt.Sprintf("note: the run has had no event and no output for %s, and its controller, %s, %s; %s", silent.Round(time.Second), presence.Name(*c), presence.LockState(held, seen), presence.IfGone(f.run)))
				}
			}
			if alive || !known {
				continue
			}
		}
		if s, err := f.run.Summary(); err == nil && s.State == job.StateLost {
			cancel(ErrControllerGone)
			return
		}
	}
}

// lost returns the error for a run whose controller has gone while this process followed the run.
func lost(run home.Run) error {
	return &failure.Error{Code: failure.CodeMayPass, Err: GoneError{run.ID}, Hint: "gangrun attach " + run.ID + " goes on with it"}
}

// GoneError is the error if the controller of a run is gone.
type GoneError struct{ Run string }

// Error names the run.
func (e GoneError) Error() string { return "the controller of run " + e.Run + " is gone" }

// ErrControllerGone is the cause of a context that ended because the run's controller is gone.
var ErrControllerGone = errors.New("its controller is gone")
