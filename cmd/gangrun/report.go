package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/supervisor"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "tell what became of a run: attempts, causes, verdicts, times",
		ArgsUsage:   "[OPTIONS] [RUN]",
		Description: "RUN is an ID, the beginning of one, or nothing for the newest run.",
		Flags:       []cli.Flag{formatFlag()},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			run, err := oneRun(c)
			if err != nil {
				return err
			}
			report, _, err := readReport(run)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.App.Writer, report)
			}
			return printSummary(c.App.Writer, report)
		},
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
