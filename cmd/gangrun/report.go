package main

import (
	"fmt"

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
			for _, line := range supervisor.Summary(report) {
				fmt.Fprintln(c.App.Writer, line)
			}
			return nil
		},
	}
}
