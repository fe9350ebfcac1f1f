package main

import (
	"fmt"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
)

func stopCommand() *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "end a run in order, and wait until it has ended",
		ArgsUsage: "[OPTIONS] RUN",
		Description: "RUN is an ID, the beginning of one, or last for the newest run. Its controller may be on\n" +
			"another host that has the same GANGRUN_HOME, as over NFS. Where the controller was killed,\n" +
			"this process takes the run over and ends it.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "give the ranks no grace period"},
			&cli.BoolFlag{Name: "force", Usage: "end a run whose controller was on another host, and is gone there"},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			if !c.Args().Present() {
				return failure.Usage("gangrun ps lists the runs; gangrun stop last ends the newest", "stop needs a run")
			}
			run, err := oneRun(c)
			if err != nil {
				return err
			}
			stopped, already, err := controller.Stop{Now: c.Bool("now"), Force: c.Bool("force"), Notes: c.App.ErrWriter}.End(c.Context, run)
			if err != nil {
				return ofRun(run, err)
			}
			if asJSON {
				return view.JSON(c.App.Writer, stopped)
			}
			note := ""
			if already {
				note = " (it had already ended)"
			}
			fmt.Fprintf(c.App.Writer, "run %s: %s%s\n", stopped.Run, stopped.State, note)
			return nil
		},
	}
}
