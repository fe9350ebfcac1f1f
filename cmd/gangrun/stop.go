package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
)

// stopLate is how long beyond its grace period a run may take to end.
const stopLate = 30 * time.Second

func stopCommand() *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "end a run in order, and wait until it has ended",
		ArgsUsage: "[OPTIONS] RUN",
		Description: "RUN is an ID, the beginning of one, or last for the newest run. Its controller may be on\n" +
			"another host that has the same GANGRUN_HOME, as over NFS. A run whose controller is gone is\n" +
			"left as it is: ranks on other hosts end by themselves.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "give the ranks no grace period"},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			if !c.Args().Present() {
				return usage("gangrun ps lists the runs; gangrun stop last ends the newest", "stop needs a run")
			}
			run, err := oneRun(c)
			if err != nil {
				return err
			}
			stopped, err := stopRun(c.Context, run, c.Bool("now"), c.App.ErrWriter)
			if err != nil {
				return err
			}
			if stopped.State == job.StateLost {
				fmt.Fprintln(c.App.ErrWriter, "gangrun: note: nobody is left who could be asked, and nothing was ended now")
				tellLost(c.App.ErrWriter, run)
			}
			if asJSON {
				return printJSON(c.App.Writer, stopped)
			}
			fmt.Fprintf(c.App.Writer, "run %s: %s\n", stopped.Run, stopped.State)
			return nil
		},
	}
}

// stopRun asks a run's controller to end it and waits for that. A run that has
// ended already is left as it is.
func stopRun(ctx context.Context, run home.Run, now bool, stderr io.Writer) (home.Summary, error) {
	s, err := run.Summary()
	if err != nil || s.State.Final() && s.State != job.StateLost {
		return s, err
	}
	if s.State == job.StateLost || s.Controller == nil {
		events, skipped, err := replay(run)
		if err == nil && (specOf(events) == nil || s.Controller == nil) {
			err = untold(run, events, skipped)
		}
		return s, err
	}
	if _, known := home.Alive(*s.Controller); known {
		err = signalController(*s.Controller, now)
	} else {
		fmt.Fprintf(stderr, "gangrun: note: the run's controller is %s: it is asked in the run's directory, where it looks once a second\n", nameOf(*s.Controller))
		err = askController(run, *s.Controller, now)
	}
	if err != nil {
		return s, err
	}
	limit := stopLate + time.Duration(job.DefaultGrace)
	if events, _, err := journal.Replay(run.JournalPath()); err == nil && len(events) > 0 && events[0].Spec != nil {
		spec := events[0].Spec // a host that is silent is waited for
		limit = stopLate + time.Duration(spec.Grace+spec.HostTimeout+spec.OrphanGrace)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := journal.Follow(ctx, run.JournalPath(), 0, func(job.Event) {}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return s, err
	}
	s, err = run.Summary()
	if err == nil && !s.State.Final() {
		return s, &failure{code: exitInternal, err: fmt.Errorf("run %s has not ended within %s: it is %s", run.ID, limit, s.State), hint: "gangrun stop --now " + run.ID + " gives its ranks no grace"}
	}
	return s, err
}

// signalNow follows SIGTERM for an end at once. A second SIGTERM would be lost
// while the first is pending, and of two that are pending the one with the lower
// number is delivered first.
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
