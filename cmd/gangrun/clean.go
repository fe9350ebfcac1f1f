package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/agent/box"
	"github.com/gangrun/gangrun/internal/cleanup"
	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/controller/hostclean"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/container"
)

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name:      "clean",
		Usage:     "remove the records and logs of runs that have ended, and what they have left behind",
		ArgsUsage: "[OPTIONS] [RUN ...]",
		Description: "Without RUNs, those are removed that ended longer ago than --older. Runs that are up are never\n" +
			"touched. What lost runs have left in the temporary directory is removed too. Processes of gangs\n" +
			"whose agents and watchdogs were all killed are ended on this machine, whatever run they are of,\n" +
			"and containers of dead agents are removed.\n\n" +
			"With --hosts, --hostfile or --inventory, those hosts are cleaned, and no records are removed here:\n" +
			"processes and containers that dead runs have left there, what containerd keeps for them, and images\n" +
			"that gangrun has brought there and nobody has used for --older.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "older", Usage: "remove runs that ended, and images that were last used, longer than `TIME` ago", Value: "168h"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would be removed"},
			formatFlag(),
		}, hostFlags()...),
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			older, err := job.ParseDuration(c.String("older"))
			if err != nil {
				return failure.Usage("write --older 24h, or --older 0s for every run that has ended", "--older: %w", err)
			}
			from, err := hostSource(c)
			if err != nil {
				return err
			}
			if from != (hostlist.Source{}) {
				return cleanHosts(c, from, time.Duration(older), asJSON)
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
			cleaned, err := box.Clean(c.Context, container.Sockets(os.Getenv), -1, dry)
			return errors.Join(cleanup.Remove(victims, killed, cleaned.Containers, dry).Print(c.App.Writer, asJSON), cleanup.StillRunning(left), err)
		},
	}
}

func cleanHosts(c *cli.Context, from hostlist.Source, older time.Duration, asJSON bool) error {
	switch {
	case c.Args().Present():
		return failure.Usage("leave out the RUNs, or the hosts", "hosts are cleaned of all dead runs, not of %q", c.Args().Slice())
	case c.Bool("dry-run"):
		return failure.Usage("leave out --dry-run", "--dry-run cannot be with hosts: gangrun's start there already ends what dead runs have left")
	}
	list, err := from.Read()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context()
	defer stop()
	all, err := hostclean.Clean(ctx, list, older, func(question string) { fmt.Fprintln(c.App.ErrWriter, question) })
	if left, ok := errors.AsType[interrupt.Signal](err); ok {
		return failure.Exit(128 + int(left.Number))
	}
	if err != nil {
		return err
	}
	return cleanup.PrintHosts(c.App.Writer, all, asJSON)
}
