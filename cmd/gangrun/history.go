package main

import (
	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/view"
)

// historyRuns is how many runs history lists by default.
const historyRuns = 20

func historyCommand() *cli.Command {
	return &cli.Command{
		Name:  "history",
		Usage: "list how the newest runs ended and why, also those that clean has removed",
		Description: "If several runs of a job have failed with the same signature, the number of these runs follows\n" +
			"it. Runs with the same name, or without a name and with the same command, are of the same job.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "list only runs of the job `NAME`"},
			&cli.IntFlag{Name: "limit", Usage: "list at most `N` runs", Value: historyRuns},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("write gangrun history --name NAME; gangrun report RUN tells of one run", "history takes no arguments, got %q", c.Args().Slice())
			}
			if c.Int("limit") < 1 {
				return failure.Usage("write a number from 1 on", "--limit %d lists nothing", c.Int("limit"))
			}
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			dir, err := controller.HomeDir()
			if err != nil {
				return err
			}
			runs, err := history.In(dir).List(c.Context, c.String("name"), c.Int("limit"))
			if err != nil {
				return err
			}
			if asJSON {
				return view.JSON(c.App.Writer, runs)
			}
			return view.PrintHistory(c.App.Writer, runs)
		},
	}
}
