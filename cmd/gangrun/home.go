package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
)

// onRun returns the action of a command about one run.
func onRun(do func(c *cli.Context, run home.Run, asJSON bool) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		asJSON, err := asJSON(c)
		if err != nil {
			return err
		}
		run, err := oneRun(c)
		if err != nil {
			return err
		}
		return ofRun(run, do(c, run, asJSON))
	}
}

// ofRun returns err as the error of a command about a run. If the run's directory was removed in the meantime, the
// error says so.
func ofRun(run home.Run, err error) error {
	if err = run.Explain(err); errors.As(err, new(*home.RemovedError)) {
		return &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return err
}

// oneRun returns the run that the command's arguments name. Without arguments, it returns the newest run.
func oneRun(c *cli.Context) (home.Run, error) {
	if c.NArg() > 1 {
		return home.Run{}, failure.Usage("write gangrun "+c.Command.Name+" RUN; gangrun ps lists the runs", "%s is about one run, got %q", c.Command.Name, c.Args().Slice())
	}
	dir, err := controller.HomeDir()
	if err != nil {
		return home.Run{}, err
	}
	run, err := home.Find(dir, c.Args().First())
	if err != nil {
		return home.Run{}, &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return run, nil
}
