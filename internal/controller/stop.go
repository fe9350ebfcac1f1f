package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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

// stopLate is how long beyond its grace period a run may take to end.
const stopLate = 30 * time.Second

// Stop is how a run is to be ended.
type Stop struct {
	Now   bool // without grace
	Force bool // the user knows that a controller that cannot be seen from here is gone
	Notes io.Writer
}

// End has a run's controller end it and waits for that, or does it where there is none.
// A run that had ended already is left as it is, which is told.
func (o Stop) End(ctx context.Context, run home.Run) (home.Summary, bool, error) {
	for already := true; ; already = false {
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
			ended, err := o.instead(ctx, run)
			if errors.Is(err, home.ErrControlled) {
				continue // somebody else was faster
			}
			return ended, false, err
		}
		held := false
		if known {
			err = signalController(*s.Controller, o.Now)
		} else {
			held, _ = run.Controlled() // who takes the request up may be gone before anybody looks again
			fmt.Fprintf(o.Notes, "gangrun: note: the run's controller is %s: it is asked in the run's directory, where it looks once a second\n", presence.Name(*s.Controller))
			err = askController(run, *s.Controller, o.Now)
		}
		if err == nil {
			err = o.wait(ctx, run, *s.Controller, held)
		}
		if err != nil && !errors.Is(err, follow.ErrControllerGone) {
			return s, false, err
		}
	}
}

// instead ends a run in the place of its last controller, which is gone. The error is
// home.ErrControlled where another process has taken the run over.
func (o Stop) instead(ctx context.Context, run home.Run) (home.Summary, error) {
	// Who would stop it too may ask this process at once: it is doing so.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGTERM, signalNow)
	defer signal.Stop(asked)
	t, err := Take(ctx, run, o.Force)
	if err == nil {
		err = t.end(o.Now)
	}
	if err != nil {
		return home.Summary{}, err
	}
	s, err := run.Summary()
	if err == nil && !s.State.Final() {
		err = &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf("run %s was ended, but its journal does not tell: it could not be written", run.ID), Hint: "make room there, and type gangrun stop " + run.ID + " again"}
	}
	return s, err
}

// wait waits for the end of a run whose controller was asked for it. held says that its
// lock was seen before that. The error is follow.ErrControllerGone where it is seen to be gone.
func (o Stop) wait(ctx context.Context, run home.Run, asked job.Controller, held bool) error {
	limit := stopLate + time.Duration(job.DefaultGrace)
	if events, _, err := journal.Replay(run.JournalPath()); err == nil && record.Spec(events) != nil {
		spec := record.Spec(events) // a host that is silent is waited for
		limit = stopLate + time.Duration(spec.Grace+spec.HostTimeout+spec.OrphanGrace)
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

// errStopLate is that a run takes too long to end.
var errStopLate = errors.New("it takes too long")

// watchController ends a wait, which ctx is of, when the controller is gone that was
// asked to end the run: at once where it is on this machine, and on another where its
// lock was seen from here while it held it, which may have been before.
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
			continue // the journal tells
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

// signalNow follows SIGTERM for an end at once, since a second SIGTERM would be lost
// while the first is pending. Of two that are pending threads may take either first.
const signalNow = unix.SIGPWR

// signalController sends SIGTERM to exactly the process that is the
// controller of a run, and signalNow behind it for an end at once.
func signalController(c job.Controller, now bool) error {
	fd, err := unix.PidfdOpen(c.PID, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	alive, _ := home.Alive(c)
	if !alive {
		return nil // it has just ended
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	if now {
		if err := unix.PidfdSendSignal(fd, signalNow, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return os.NewSyscallError("pidfd_send_signal", err)
		}
	}
	// A controller that is stopped (Ctrl-Z) acts on them only when it goes on.
	if err := unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	return nil
}
