package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Status is a report, and the present state of each rank.
type Status struct {
	runreport.Report
	Dir string       `json:"dir"`
	Now []RankStatus `json:"ranks_now"`
}

// RankStatus is the state of one rank of the latest attempt.
type RankStatus struct {
	Rank  int    `json:"rank"`
	Host  string `json:"host"`
	PID   int    `json:"pid,omitempty"`
	State string `json:"state"` // placed, running, or how it ended
	// Silent is the time of the last contact with the rank's host, if gangrun has no contact
	// with it now. It is nil if gangrun has contact, or if the rank has ended and all its
	// output has arrived.
	Silent *time.Time `json:"silent_since,omitempty"`
	Step   int64      `json:"step"` // the last step that the rank printed; -1 if it has printed none
	// Loss is the last loss that the rank printed. If that is NaN or infinite, Loss is nil, and
	// LossIs is "nan", "inf" or "-inf".
	Loss   *float64  `json:"loss,omitempty"`
	LossIs string    `json:"loss_is,omitempty"`
	Exit   *job.Exit `json:"exit,omitempty"`
}

// NewStatus returns the status of a run, computed from its report and events.
func NewStatus(run home.Run, report runreport.Report, events []job.Event) Status {
	return Status{Report: report, Dir: run.Dir, Now: ranksNow(report, events)}
}

// ranksNow folds the events of the latest attempt, rank by rank.
func ranksNow(r runreport.Report, events []job.Event) []RankStatus {
	last := r.Last()
	ranks := []RankStatus{}
	if last == nil {
		return ranks
	}
	for _, p := range last.Placement {
		ranks = append(ranks, RankStatus{Rank: p.Rank, Host: p.Host, State: "placed", Step: -1})
	}
	at := func(rank int) *RankStatus {
		if rank < 0 || rank >= len(ranks) {
			return &RankStatus{}
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
				if s.Step = p.At(); p.HasLoss() {
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

// Text prints the status for people.
func (s Status) Text(w io.Writer, now time.Time) error {
	if err := PrintSummary(w, s.Report); err != nil || s.State.Final() {
		return err
	}
	if s.Started != nil {
		fmt.Fprintf(w, "up for   %s\n", Since(*s.Started, now))
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

// Since formats the time between two moments for a table.
func Since(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	d := to.Sub(from)
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		hours := int(d.Round(time.Hour) / time.Hour)
		return fmt.Sprintf("%dd%dh", hours/24, hours%24)
	}
}
