package main

import (
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/curveview"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/runlogs"
	"github.com/gangrun/gangrun/internal/view"
)

func curveCommand() *cli.Command {
	return &cli.Command{
		Name:      "curve",
		Usage:     "judge the loss curve of a job, and plot it",
		ArgsUsage: "[OPTIONS] FILE|DIRECTORY...|RUN",
		Description: "The files are those of one job: what a trainer has printed, event files of TensorBoard, CSV, JSON lines, the file of a\n" +
			"W&B offline run, or trainer_state.json. Of a directory, those are read that have the name of such a file: *.csv, *.tsv,\n" +
			"*.jsonl, *.ndjson, *.wandb, *tfevents* and trainer_state.json. RUN is an ID or the beginning of one, or last. The exit\n" +
			"code is 0 if no verdict is sure at the end of the curve, 1 if no metric was found, and 2 if a verdict is sure.",
		Flags: []cli.Flag{formatFlag(),
			&cli.StringFlag{Name: "metric", Usage: "judge by the metric `NAME`"},
			&cli.BoolFlag{Name: "higher", Usage: "higher values of the metric are better"},
			&cli.BoolFlag{Name: "lower", Usage: "lower values of the metric are better"},
			&cli.Float64Flag{Name: "target", Usage: "the metric should reach `VALUE`"},
			&cli.Int64Flag{Name: "total", Usage: "the run has `N` steps; without it, what the files say"},
			&cli.Int64Flag{Name: "decay-end", Usage: "the learning rate no longer falls from step `N` on; 0 is a constant rate"},
			&cli.Float64Flag{Name: "gpus", Usage: "the job had `N` GPUs", Value: 1},
			&cli.StringSliceFlag{Name: "earlier", Usage: "compare with an earlier run of the same job, whose metrics are in `FILE`"},
		},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			o, err := curveOptions(c)
			if err != nil {
				return err
			}
			paths, err := curveFiles(c.Args().Slice(), &o, c.IsSet("gpus"))
			if err != nil {
				return err
			}
			r, err := curveview.Read(c.Context, paths, o)
			if none := new(curveview.NoMetricError); errors.As(err, &none) && none.Metric == "" {
				return &failure.Error{Code: 1, Err: err, Hint: none.Hint()}
			}
			if err != nil {
				return &failure.Error{Code: failure.CodeUsage, Err: err, Hint: failure.Hint(err)}
			}
			if asJSON {
				err = view.JSON(c.App.Writer, r)
			} else {
				err = r.Print(c.App.Writer, terminalColumns(), term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "")
			}
			if err == nil && r.Sure() {
				return failure.Exit(2)
			}
			return err
		},
	}
}

func curveOptions(c *cli.Context) (curveview.Options, error) {
	o := curveview.Options{Metric: c.String("metric"), Total: c.Int64("total"), GPUs: c.Float64("gpus"), Earlier: c.StringSlice("earlier")}
	switch higher := c.Bool("higher"); {
	case higher && c.Bool("lower"):
		return o, failure.Usage("leave one of them out", "--higher and --lower contradict each other")
	case higher || c.Bool("lower"):
		o.Higher = &higher
	}
	if c.IsSet("target") {
		target := c.Float64("target")
		o.Target = &target
	}
	if c.IsSet("decay-end") {
		end := c.Int64("decay-end")
		o.Settled = &end
	}
	if !c.Args().Present() {
		return o, failure.Usage("gangrun curve FILE... reads files, gangrun curve DIRECTORY the files in it; gangrun curve last is the newest run", "curve needs a file, a directory or a run")
	}
	if o.Total < 0 || o.GPUs <= 0 || o.Settled != nil && *o.Settled < 0 {
		return o, failure.Usage("write a positive number", "--total %d, --gpus %g or --decay-end is no such number", o.Total, o.GPUs)
	}
	return o, nil
}

// curveFiles returns the files that the arguments name. If there is only one argument and no such
// file, the argument names a run. curveFiles then returns the logs of the run, and sets the run's
// journal, time and ranks in the options.
func curveFiles(names []string, o *curveview.Options, gpus bool) ([]string, error) {
	if _, err := os.Stat(names[0]); err == nil || len(names) > 1 || !errors.Is(err, os.ErrNotExist) {
		return names, nil
	}
	dir, err := controller.HomeDir()
	if err != nil {
		return nil, err
	}
	run, err := home.Find(dir, names[0])
	if err != nil {
		return nil, &failure.Error{Code: failure.CodeUsage, Err: err, Hint: "give the path of a file, or the ID of a run; gangrun ps --all lists the runs"}
	}
	s, err := run.Summary()
	if err != nil {
		return nil, ofRun(run, err)
	}
	files, err := runlogs.Query{Rank: -1}.Files(s)
	if err != nil {
		return nil, ofRun(run, err)
	}
	var paths []string
	for _, f := range files {
		if f.Bytes > 0 {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 && s.Attempts == 0 {
		return nil, curveview.NoFilesError(run.ID)
	}
	o.Journal = run.JournalPath()
	end := s.Ended
	if end.IsZero() {
		end = time.Now()
	}
	if o.Seconds = end.Sub(s.Started).Seconds(); !gpus {
		o.GPUs = float64(max(1, s.Ranks))
	}
	return paths, nil
}

// terminalColumns returns the width of the terminal, but at most 140. Without a terminal, it returns 80.
func terminalColumns() int {
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width > 0 {
		return min(width, 140)
	}
	return 80
}
