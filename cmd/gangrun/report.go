package main

import (
	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/view"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "tell what became of a run: attempts, causes, verdicts, times",
		ArgsUsage:   "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run.",
		Flags:       []cli.Flag{formatFlag()},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			report, _, err := record.Report(run)
			if err != nil {
				return err
			}
			if asJSON {
				return view.JSON(c.App.Writer, report)
			}
			return view.PrintSummary(c.App.Writer, report)
		}),
	}
}
