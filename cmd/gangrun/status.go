package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/controller/inspect"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/runpage"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "tell where a run is, and how its ranks are",
		ArgsUsage: "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run. STATE is what the rank's\n" +
			"process does, IDLE the time since its last new step, SILENT since its last output.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "ranks", Usage: "show every rank of a large gang"},
			&cli.BoolFlag{Name: "stacks", Usage: "show where the ranks are now, in their code: the run's controller is asked, also one on another host"},
			formatFlag(),
		},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			if c.Bool("stacks") {
				return printStacks(c, run, asJSON)
			}
			report, events, err := record.Report(run)
			if err != nil {
				return err
			}
			life, err := record.Vitals(run)
			if err != nil {
				return err
			}
			status := view.NewStatus(run, report, events, life)
			if asJSON {
				return view.JSON(c.App.Writer, status)
			}
			if err := status.Text(c.App.Writer, time.Now(), c.Bool("ranks")); err != nil {
				return err
			}
			if err := plotStatus(c, run, events); err != nil {
				return err
			}
			noteController(c, run, report)
			return nil
		}),
	}
}

// noteController prints a note and a hint to standard error if the controller of a run is gone.
func noteController(c *cli.Context, run home.Run, report runreport.Report) {
	if report.State == job.StateLost {
		controller.NoteLost(c.App.ErrWriter, run)
	} else if gone := presence.MissingController(run); gone != nil {
		presence.NoteMissing(c.App.ErrWriter, run, *gone, presence.SlurmEnd(c.Context, report.Batch))
	}
}

// plotStatus reads the logs for the plot for at most plotLimit. If the logs are larger than plotBytes, it takes the
// curve from the journal. The plot has plotRows rows.
const (
	plotLimit = 2 * time.Second
	plotBytes = 8 << 20
	plotRows  = 6
)

// plotStatus prints the loss curve of the latest attempt, if there is one.
func plotStatus(c *cli.Context, run home.Run, events []job.Event) error {
	ctx, cancel := context.WithTimeout(c.Context, plotLimit)
	defer cancel()
	page := runpage.New(run)
	for _, e := range events {
		page.Add(e)
	}
	page.ReadCurves(ctx, 1, plotBytes)
	for _, line := range page.Plot(terminalColumns(), plotRows) {
		if _, err := fmt.Fprintln(c.App.Writer, line); err != nil {
			return err
		}
	}
	return nil
}

// printStacks prints the present stacks of the ranks of a run.
func printStacks(c *cli.Context, run home.Run, asJSON bool) error {
	ctx, stop := interrupt.Context()
	defer stop()
	stacks, err := inspect.Stacks(ctx, run)
	if left, ok := errors.AsType[interrupt.Signal](context.Cause(ctx)); ok && err != nil {
		return failure.Exit(128 + int(left.Number))
	}
	if err != nil {
		return err
	}
	if asJSON {
		return view.JSON(c.App.Writer, stacks)
	}
	return view.PrintStacks(c.App.Writer, stacks)
}
