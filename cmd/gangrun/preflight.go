package main

import (
	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/job"
)

func preflightCommand() *cli.Command {
	return &cli.Command{
		Name:      "preflight",
		Usage:     "check a job, and try it on one rank, without starting its gang",
		ArgsUsage: jobArgs,
		Flags: append(jobFlags(), formatFlag(), verboseFlag(),
			&cli.IntFlag{Name: "gang-ranks", Usage: "judge the trial as that of a gang of `N` ranks, of which this job has a part: gangrun submit does so"}),
		Action: onJob(func(c *cli.Context, spec job.Spec, asJSON bool) error {
			return controller.Preflight(spec, controller.Options{JSON: asJSON, Aside: true, PreflightOnly: true, Verbose: c.Bool("verbose"), GangRanks: c.Int("gang-ranks")})
		}),
	}
}
