package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

// psRuns is how many runs ps lists without --all.
const psRuns = 20

func psCommand() *cli.Command {
	return &cli.Command{
		Name:  "ps",
		Usage: "list the newest runs and where they are",
		Description: "A run whose controller is gone before it had ended is lost. A question mark is behind the\n" +
			"state of one whose controller was on another host, and may be gone there. If it was in a\n" +
			"job of Slurm, Slurm is asked.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: fmt.Sprintf("list every run, not only those that are up and the newest %d", psRuns)},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("gangrun status RUN tells of one run", "ps takes no arguments, got %q", c.Args().Slice())
			}
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			dir, err := controller.HomeDir()
			if err != nil {
				return err
			}
			runs, err := home.List(dir)
			if err != nil {
				return err
			}
			if !c.Bool("all") {
				runs = newest(runs)
			}
			list := present(c.Context, runs)
			if asJSON {
				return view.JSON(c.App.Writer, list)
			}
			return printRuns(c.App.Writer, c.App.ErrWriter, list, time.Now())
		},
	}
}

// newest returns the newest psRuns runs, and the older runs that have not ended.
func newest(runs []home.Summary) []home.Summary {
	kept := []home.Summary{}
	for i, r := range runs {
		if i < psRuns || !r.State.Final() {
			kept = append(kept, r)
		}
	}
	return kept
}

// listed is a run in the list.
type listed struct {
	home.Summary
	// Missing is true if the run has not ended, and its controller was on another host and may be gone there. If Slurm
	// says that it is gone, the state of the run is lost.
	Missing bool `json:"controller_missing,omitempty"`

	tell func(notes io.Writer) // says what to do about the missing controller
}

// present finds out which controllers are missing.
func present(ctx context.Context, runs []home.Summary) []listed {
	list := []listed{}
	for _, r := range runs {
		l := listed{Summary: r}
		run := home.Run{ID: r.Run, Dir: r.Dir}
		if c := presence.MissingController(run); !r.State.Final() && c != nil {
			end := presence.SlurmEnd(ctx, r.Batch)
			if l.Missing = true; end != "" {
				l.State = job.StateLost
			}
			l.tell = func(notes io.Writer) { presence.NoteMissing(notes, run, *c, end) }
		}
		list = append(list, l)
	}
	return list
}

func printRuns(w, notes io.Writer, runs []listed, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	jobs := slices.ContainsFunc(runs, func(r listed) bool { return r.Batch != nil })
	header := "RUN\tSTATE\tATTEMPT\tRANKS\tSTEP\tSTARTED\tTIME\tEXIT"
	if jobs {
		header += "\tJOB"
	}
	fmt.Fprintln(t, header)
	for _, r := range runs {
		state, end, step, exit := string(r.State), now, "", ""
		if r.Problem != "" {
			state = "unknown: " + r.Problem
		}
		if r.Missing && r.State != job.StateLost {
			state += "?"
		}
		if !r.Ended.IsZero() {
			end = r.Ended
		} else if r.State == job.StateLost {
			end = time.Time{}
		}
		if r.Step >= 0 {
			step = strconv.FormatInt(r.Step, 10)
		}
		if r.ExitCode != nil {
			exit = strconv.Itoa(*r.ExitCode)
		}
		started := ""
		if !r.Started.IsZero() {
			started = r.Started.Local().Format("2006-01-02 15:04:05")
		}
		line := fmt.Sprintf("%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s", r.Run, state, r.Attempts, r.Ranks, step, started, view.Since(r.Started, end), exit)
		if r.Batch != nil {
			line += "\t" + r.Batch.String()
		}
		fmt.Fprintln(t, line)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range runs {
		if r.tell != nil {
			r.tell(notes)
		}
	}
	return nil
}
