package main

import (
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/runlogs"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
)

func logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "show what the ranks of a run have printed",
		ArgsUsage: "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run. Lines have their rank before\n" +
			"them, unless there is only one; standard error goes to standard error. With -o json the log files\n" +
			"are listed, with their sizes.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the run has ended"},
			&cli.StringFlag{Name: "rank", Aliases: []string{"r"}, Usage: "only this `RANK`"},
			&cli.StringFlag{Name: "attempt", Usage: "this `ATTEMPT`, not the latest: a number, or trial; trial1, trial2 ... are the rounds of the trial"},
			&cli.StringFlag{Name: "stream", Usage: "only out or err, as `STREAM`"},
			formatFlag(),
		},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			want, err := logQuery(c)
			if err != nil {
				return err
			}
			if asJSON {
				want.OpenMPI = want.Rank < 0 && want.Stream == ""
				s, err := run.Summary()
				if err != nil {
					return err
				}
				files, err := want.Files(s)
				if err != nil {
					return err
				}
				return view.JSON(c.App.Writer, files)
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return want.Show(ctx, run, c.Bool("follow"))
		}),
	}
}

// logQuery returns the query for the logs that the flags ask for.
func logQuery(c *cli.Context) (runlogs.Query, error) {
	q := runlogs.Query{Rank: -1, Attempt: c.String("attempt"), Stream: c.String("stream")}
	if r := c.String("rank"); r != "" {
		n, err := strconv.Atoi(r)
		if err != nil || n < 0 {
			return q, failure.Usage("write --rank 3, or leave it out for every rank", "%q is no rank", r)
		}
		q.Rank = n
	}
	if number, _ := strings.CutPrefix(q.Attempt, "trial"); number != "" {
		if n, err := strconv.Atoi(number); err != nil || n < 1 {
			return q, failure.Usage("write --attempt 2, --attempt trial or --attempt trial2", "%q is no attempt", q.Attempt)
		}
	}
	if !slices.Contains([]string{"", "out", "err"}, q.Stream) {
		return q, failure.Usage("write --stream out or --stream err", "%q is no stream", q.Stream)
	}
	return q, nil
}
