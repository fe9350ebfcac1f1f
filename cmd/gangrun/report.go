package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/supervisor"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "tell what became of a run: attempts, causes, verdicts, times",
		ArgsUsage:   "[OPTIONS] [RUN]",
		Description: "RUN is an ID, the beginning of one, or nothing for the newest run.",
		Flags:       []cli.Flag{formatFlag()},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			report, _, err := readReport(run)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.App.Writer, report)
			}
			return printSummary(c.App.Writer, report)
		}),
	}
}

// printSummary prints what Summary tells.
func printSummary(w io.Writer, r supervisor.Report) error {
	for _, line := range supervisor.Summary(r) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
