package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/vitals"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Status is a report, and the present state of each rank.
type Status struct {
	runreport.Report
	Dir string       `json:"dir"`
	Now []RankStatus `json:"ranks_now"`
	// Gang sums up the vitals of the ranks, which were computed at VitalsAt. Both are nil while no
	// gang runs.
	Gang     *vitals.Gang `json:"gang,omitempty"`
	VitalsAt *time.Time   `json:"vitals_at,omitempty"`

	stale bool // the vitals should have been replaced long ago
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
	// Vitals are the rank's signs of life. They are nil if the rank has ended, or if none are known.
	Vitals *vitals.Rank `json:"vitals,omitempty"`
}

// NewStatus returns the status of a run, computed from its report and events, and from the vitals of
// its gang, which may be nil.
func NewStatus(run home.Run, report runreport.Report, events []job.Event, v *vitals.Vitals, now time.Time) Status {
	s := Status{Report: report, Dir: run.Dir, Now: ranksNow(report, events)}
	last := report.Last()
	if v == nil || last == nil || v.Attempt != last.Number || last.Ended != nil || report.State.Final() {
		return s
	}
	s.Gang, s.VitalsAt, s.stale = &v.Gang, &v.At, v.Old(now)
	for i := range s.Now {
		if r := &s.Now[i]; r.Exit == nil {
			r.Vitals = v.Of(r.Rank)
		}
	}
	return s
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

// Text prints the status for people. all shows every rank of a large gang.
func (s Status) Text(w io.Writer, now time.Time, all bool) error {
	if err := PrintSummary(w, s.Report); err != nil || s.State.Final() {
		return err
	}
	if s.Started != nil {
		fmt.Fprintf(w, "up for   %s\n", Since(*s.Started, now))
	}
	if s.Gang != nil {
		fmt.Fprintf(w, "gang     %s\n", s.lifeLine(now))
	}
	if len(s.Now) == 0 {
		return nil
	}
	return printRanks(w, s.Run, s.Now, all)
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
