package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:        "status",
		Usage:       "tell where a run is, and how its ranks are",
		ArgsUsage:   "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run.",
		Flags:       []cli.Flag{formatFlag()},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			report, events, err := record.Report(run)
			if err != nil {
				return err
			}
			status := runStatus{Report: report, Dir: run.Dir, Now: ranksNow(report, events)}
			if asJSON {
				return view.JSON(c.App.Writer, status)
			}
			if err := status.print(c.App.Writer, time.Now()); err != nil {
				return err
			}
			if status.State == job.StateLost {
				tellLost(c.App.ErrWriter, run)
			} else if gone := presence.MissingController(run); gone != nil {
				presence.NoteMissing(c.App.ErrWriter, run, *gone)
			}
			return nil
		}),
	}
}

// runStatus is a report with what is known of each rank now.
type runStatus struct {
	supervisor.Report
	Dir string       `json:"dir"`
	Now []rankStatus `json:"ranks_now"`
}

// rankStatus is one rank of the latest attempt.
type rankStatus struct {
	Rank  int    `json:"rank"`
	Host  string `json:"host"`
	PID   int    `json:"pid,omitempty"`
	State string `json:"state"` // placed, running, or how it ended
	// Silent is since when nothing was heard of the host of a rank that has not
	// ended, or whose output has not all arrived; absent while it is heard.
	Silent *time.Time `json:"silent_since,omitempty"`
	Step   int64      `json:"step"` // -1 when it has told none
	// Loss is the last that it told, LossIs "nan", "inf" or "-inf" where that is not
	// finite.
	Loss   *float64  `json:"loss,omitempty"`
	LossIs string    `json:"loss_is,omitempty"`
	Exit   *job.Exit `json:"exit,omitempty"`
}

// ranksNow folds the events of the latest attempt, rank by rank.
func ranksNow(r supervisor.Report, events []job.Event) []rankStatus {
	last := r.Last()
	ranks := []rankStatus{}
	if last == nil {
		return ranks
	}
	for _, p := range last.Placement {
		ranks = append(ranks, rankStatus{Rank: p.Rank, Host: p.Host, State: "placed", Step: -1})
	}
	at := func(rank int) *rankStatus {
		if rank < 0 || rank >= len(ranks) {
			return &rankStatus{}
		}
		return &ranks[rank]
	}
	for _, e := range events {
		if e.Attempt != last.Number {
			continue
		}
		switch e.Kind {
		case job.KindStarted:
			s := at(e.Rank)
			s.PID, s.State = e.PID, "running"
			if r.State == job.StateLost {
				s.State = "lost"
			}
		case job.KindProgress:
			if p := e.Progress; p != nil {
				s := at(e.Rank)
				if s.Step = p.Step; p.HasLoss() {
					s.Loss, s.LossIs = p.Loss, p.LossIs
				}
			}
		case job.KindExit:
			if e.Exit != nil {
				s := at(e.Exit.Rank)
				s.Exit, s.State = e.Exit, string(e.Exit.Status)
				if e.Exit.Status == job.Lost {
					s.Silent = nil
				}
			}
		case job.KindSuspect, job.KindHeard, job.KindOutcome:
			for i := range ranks {
				s := &ranks[i]
				switch {
				case e.Kind == job.KindOutcome:
					s.Silent = nil
				case s.Host != e.Host:
				case e.Kind == job.KindHeard:
					s.Silent = nil
				default:
					s.Silent = cmp.Or(e.Since, &e.Time)
				}
			}
		}
	}
	return ranks
}

func (s runStatus) print(w io.Writer, now time.Time) error {
	if err := view.PrintSummary(w, s.Report); err != nil || s.State.Final() {
		return err
	}
	if s.Started != nil {
		fmt.Fprintf(w, "up for   %s\n", since(*s.Started, now))
	}
	if len(s.Now) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RANK\tHOST\tPID\tSTATE\tSTEP")
	for _, r := range s.Now {
		step := ""
		if r.Step >= 0 {
			step = fmt.Sprint(r.Step)
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s", r.Rank, r.Host, r.PID, r.State, step)
		if r.LossIs != "" {
			fmt.Fprintf(t, "\tits loss is %s", r.LossIs)
		}
		if r.Silent != nil {
			fmt.Fprintf(t, "\t%s is silent since %s", r.Host, r.Silent.Local().Format(time.TimeOnly))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
