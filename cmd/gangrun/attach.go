package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

func attachCommand() *cli.Command {
	return &cli.Command{
		Name:      "attach",
		Usage:     "follow a run as gangrun run shows it, to its end",
		ArgsUsage: "[OPTIONS] [RUN]",
		Description: "RUN is an ID, the beginning of one, or nothing for the newest run. The exit code is the run's.\n" +
			"Ctrl-C leaves the run alone. What was printed before is told by gangrun logs.",
		Flags: []cli.Flag{formatFlag()},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			run, err := oneRun(c)
			if err != nil {
				return err
			}
			return attach(run, asJSON)
		},
	}
}

// attach follows a run to its end.
func attach(run home.Run, asJSON bool) error {
	s, err := run.Summary()
	if err != nil {
		return err
	}
	if s.State == job.StateLost {
		return lost(run)
	}
	report, err := follow(run, asJSON)
	if err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(os.Stdout, report); err != nil {
			return err
		}
	}
	return ended(report)
}

// lost is the error of a run whose controller is gone.
func lost(run home.Run) error {
	return &failure{code: exitMayPass, err: fmt.Errorf("the controller of run %s is gone", run.ID), hint: "gangrun status " + run.ID + " tells how far it came"}
}

// errControllerGone is why a run is followed no more.
var errControllerGone = errors.New("its controller is gone")

// leave is the cause of a context that ends because the user wants to see no more.
type leave struct{ signal syscall.Signal }

func (l leave) Error() string { return job.SignalName(int(l.signal)) }

// leaving returns a context that ends with the first signal of a user who has seen
// enough.
func leaving() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case sig := <-signals:
			cancel(leave{sig.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}
