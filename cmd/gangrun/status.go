package main

import (
	"time"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:        "status",
		Usage:       "tell where a run is, and how its ranks are",
		ArgsUsage:   "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run.",
		Flags:       []cli.Flag{formatFlag()},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			report, events, err := record.Report(run)
			if err != nil {
				return err
			}
			status := view.NewStatus(run, report, events)
			if asJSON {
				return view.JSON(c.App.Writer, status)
			}
			if err := status.Text(c.App.Writer, time.Now()); err != nil {
				return err
			}
			if status.State == job.StateLost {
				controller.NoteLost(c.App.ErrWriter, run)
			} else if gone := presence.MissingController(run); gone != nil {
				presence.NoteMissing(c.App.ErrWriter, run, *gone, presence.SlurmEnd(c.Context, report.Batch))
			}
			return nil
		}),
	}
}
