package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor"
)

func preflightCommand() *cli.Command {
	return &cli.Command{
		Name:      "preflight",
		Usage:     "check a job, and try it on one rank, without starting its gang",
		ArgsUsage: jobArgs,
		Flags:     append(jobFlags(), formatFlag(), verboseFlag()),
		Action: func(c *cli.Context) error {
			spec, err := jobSpec(c)
			if err != nil {
				return err
			}
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			return runPreflight(spec, asJSON, c.Bool("verbose"))
		},
	}
}

// runPreflight does what the preflight of a run does, and ends as that run
// would have ended there.
func runPreflight(spec job.Spec, asJSON, verbose bool) error {
	s, err := openSession(spec, os.Stderr)
	if err != nil {
		return err
	}
	s.verbose = verbose
	report, err := s.supervise(func(p parts) (supervisor.Report, error) {
		boss := &supervisor.Supervisor{
			Launcher: s.launcher, Placer: s, Checker: p.checker, Checkpoints: &checkpoints{},
			Diagnose: diagnose.Diagnose, Emit: p.emit,
		}
		return boss.Preflight(p.ctx, supervisor.Run{ID: s.run.ID, Controller: home.Self(), LogDir: s.run.AttemptDir}, spec)
	})
	if err != nil {
		return err
	}
	if asJSON {
		if err := s.printReport(report); err != nil {
			return err
		}
	}
	return ended(report)
}
