package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/cleanup"
	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name:      "clean",
		Usage:     "remove the records and logs of runs that have ended, and processes that they have left behind",
		ArgsUsage: "[OPTIONS] [RUN ...]",
		Description: "Without RUNs, those are removed that ended longer ago than --older. Runs that are up are never\n" +
			"touched. What lost runs have left in the temporary directory is removed too. Processes of gangs\n" +
			"whose agents and watchdogs were all killed are ended on this machine, whatever run they are of.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "older", Usage: "remove runs that ended longer than `TIME` ago", Value: "168h"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would be removed"},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			older, err := job.ParseDuration(c.String("older"))
			if err != nil {
				return failure.Usage("write --older 24h, or --older 0s for every run that has ended", "--older: %w", err)
			}
			dir, err := controller.HomeDir()
			if err != nil {
				return err
			}
			victims, err := cleanup.Select(dir, c.Args().Slice(), time.Duration(older), time.Now())
			if err != nil {
				return err
			}
			dry := c.Bool("dry-run")
			killed, left := cleanup.EndProcesses(c.Context, dry)
			return errors.Join(cleanup.Remove(victims, killed, dry).Print(c.App.Writer, asJSON), cleanup.StillRunning(left))
		},
	}
}
