// Package stop asks the controller of a run to end the run, and receives such requests. From this machine, the requests
// are signals. From other machines, they are files in the run's directory.
package stop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/follow"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/record"
)

// stopLate is how long a run may take to end after its grace period.
const stopLate = 30 * time.Second

// Request asks for the end of a run.
type Request struct {
	Now   bool // end the run without a grace period
	Force bool // the user says that the controller, which this machine cannot see, is gone
	Notes io.Writer
	// Instead ends a run whose controller is gone. It returns home.ErrControlled if another
	// process has become the controller.
	Instead func(context.Context, home.Run) (home.Summary, error)
}

// End asks the controller of a run to end it, and waits for the end of the run. If the run has no controller, End calls
// Instead. already is true if the run had ended before.
func (o Request) End(ctx context.Context, run home.Run) (s home.Summary, already bool, err error) {
	for already = true; ; already = false {
		s, err := run.Summary()
		if err != nil || s.State.Final() && s.State != job.StateLost {
			return s, already, err
		}
		if s.Controller == nil {
			events, skipped, err := record.Events(run)
			if err == nil {
				err = record.NoSpec(run, events, skipped)
			}
			return s, false, err
		}
		_, known := home.Alive(*s.Controller)
		if s.State == job.StateLost || o.Force && !known {
			ended, err := o.Instead(ctx, run)
			if errors.Is(err, home.ErrControlled) {
				continue // another process took the run over first
			}
			return ended, false, err
		}
		held := false
		if known {
			err = signal(*s.Controller, o.Now)
		} else {
			held, _ = run.Controlled() // the controller may be gone at the next look
			fmt.Fprintf(o.Notes, "gangrun: note: the run's controller is %s: it is asked in the run's directory, where it looks once a second\n", presence.Name(*s.Controller))
			err = askThroughDirectory(run, *s.Controller, o.Now)
		}
		if err == nil {
			err = o.wait(ctx, run, *s.Controller, held)
		}
		if err != nil && !errors.Is(err, follow.ErrControllerGone) {
			return s, false, err
		}
	}
}

// wait waits for the end of a run whose controller was asked to end it. held is true if this process has seen that the
// controller held its lock. The error is follow.ErrControllerGone if the controller is gone.
func (o Request) wait(ctx context.Context, run home.Run, asked job.Controller, held bool) error {
	limit := stopLate + time.Duration(job.DefaultGrace)
	if events, _, err := journal.Replay(run.JournalPath()); err == nil && record.Spec(events) != nil {
		spec := record.Spec(events) // gangrun may have to wait for silent hosts
		limit = stopLate + time.Duration(spec.Grace+spec.HostTimeout+spec.OrphanGrace)
		if spec.BeforeStop.Asks() {
			limit += time.Duration(spec.BeforeStopWait)
		}
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit, errStopLate)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { watchController(ctx, run, asked, held, cancel) })
	_, err := journal.Follow(ctx, run.JournalPath(), 0, func(job.Event) {})
	why := context.Cause(ctx)
	cancel(nil)
	watching.Wait()
	switch {
	case err == nil || why == nil:
		return err
	case !errors.Is(why, errStopLate):
		return why
	}
	s, err := run.Summary()
	if err == nil && !s.State.Final() {
		err = &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf("run %s has not ended within %s: it is %s", run.ID, limit, s.State), Hint: "gangrun stop --now " + run.ID + " gives its ranks no grace"}
	}
	return err
}

// errStopLate is the error if wait gives up.
var errStopLate = errors.New("it takes too long")

// watchController calls gone when the controller that was asked to end the run is gone. A controller on another machine
// counts as gone if it has held its lock and no longer holds it. seen is true if it was seen to hold its lock before
// this call.
func watchController(ctx context.Context, run home.Run, c job.Controller, seen bool, gone context.CancelCauseFunc) {
	tick := time.NewTicker(presence.CheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		alive, known := home.Alive(c)
		held, clear := run.Controlled()
		switch seen = seen || held; {
		case alive, !known && (held || !clear || !seen):
			continue
		}
		s, err := run.Summary()
		switch {
		case err != nil || s.State.Final() && s.State != job.StateLost:
			continue // wait finds the end of the run in the journal
		case known || s.Controller == nil || *s.Controller != c:
			gone(follow.ErrControllerGone)
		default:
			gone(&failure.Error{
				Code: failure.CodeMayPass, Err: fmt.Errorf("the run's controller, %s, has taken the request up, but does not hold the lock on the run's directory any more, and the run has not ended", presence.Name(c)),
				Hint: "if it is gone, gangrun stop --force " + run.ID + " ends the run from here",
			})
		}
		return
	}
}

// signal sends SIGTERM to the controller of a run on this machine. If the run must end at once, signal then sends
// signalNow. It uses a pidfd, so that no other process can receive these signals.
func signal(c job.Controller, now bool) error {
	fd, err := unix.PidfdOpen(c.PID, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	alive, _ := home.Alive(c)
	if !alive {
		return nil // the controller has just ended
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	if now {
		if err := unix.PidfdSendSignal(fd, signalNow, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return os.NewSyscallError("pidfd_send_signal", err)
		}
	}
	// A stopped controller (Ctrl-Z) handles the signals only after SIGCONT.
	if err := unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	return nil
}
