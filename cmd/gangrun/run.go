package main

import (
	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/controller/detached"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/job"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a job and stay with it to its end",
		ArgsUsage: jobArgs,
		Description: "The ranks' standard output is shown on standard output and their standard error on\n" +
			"standard error, each line with its rank; gangrun's own words go to standard error. With -o\n" +
			"json standard output holds the report alone, and the ranks' goes to standard error. With\n" +
			"--detach its ID is printed instead, and it goes on without the terminal.\n\n" +
			"   gangrun run -n 4 -- python3 train.py --lr 0.1\n" +
			"   gangrun run job.yaml --timeout 2h",
		Flags: append(jobFlags(), detachFlag(), formatFlag(), verboseFlag()),
		Action: onJob(func(c *cli.Context, spec job.Spec, asJSON bool) error {
			return detachable(c, asJSON, func(asJSON bool, self *detached.Process) error {
				return controller.Run(spec, controller.Options{JSON: asJSON, Verbose: c.Bool("verbose"), Detached: self})
			})
		}),
	}
}
