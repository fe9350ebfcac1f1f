package main

import (
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/controller/inspect"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/top"
	"github.com/gangrun/gangrun/internal/view"
)

// plainWidth is the width of a snapshot in columns, unless COLUMNS has another width.
const plainWidth = 160

func topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "watch a run and its ranks on the terminal: steps, CPU, memory, GPUs, who is behind or silent",
		ArgsUsage: "[OPTIONS] [RUN]",
		Description: "RUN is an ID, the beginning of one, or last for the newest run. Nothing is the newest run that\n" +
			"has not ended. The key ? lists the keys. If standard output is no terminal, top prints\n" +
			"what it would show, and ends.",
		Flags: []cli.Flag{formatFlag()},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			run, err := watchedRun(c)
			if err != nil {
				return err
			}
			if !asJSON && term.IsTerminal(int(os.Stdout.Fd())) && term.IsTerminal(int(os.Stdin.Fd())) {
				return ofRun(run, showTop(c, run))
			}
			d, err := top.Read(run, time.Now())
			switch {
			case err != nil:
				return ofRun(run, err)
			case asJSON:
				return view.JSON(c.App.Writer, d.Status)
			}
			return top.Print(c.App.Writer, d, columns(os.Getenv("COLUMNS")))
		},
	}
}

func showTop(c *cli.Context, run home.Run) error {
	err := top.Show(c.Context, run, os.Stdin, os.Stdout, inspect.Stacks)
	if errors.Is(err, top.ErrInterrupted) {
		return failure.Exit(130)
	}
	return err
}

// watchedRun returns the run that the command's arguments name. Without arguments, it returns the newest run that has
// not ended. If all runs have ended, it returns the newest run.
func watchedRun(c *cli.Context) (home.Run, error) {
	if c.Args().Present() {
		return oneRun(c)
	}
	dir, err := controller.HomeDir()
	if err != nil {
		return home.Run{}, err
	}
	runs, err := home.List(dir)
	if err != nil {
		return home.Run{}, err
	}
	for _, s := range runs {
		if s.Problem == "" && !s.State.Final() {
			return home.Run{ID: s.Run, Dir: s.Dir}, nil
		}
	}
	return oneRun(c)
}

// columns returns the width of a snapshot. setting is the value of COLUMNS.
func columns(setting string) int {
	if n, err := strconv.Atoi(setting); err == nil && n > 20 {
		return n
	}
	return plainWidth
}
