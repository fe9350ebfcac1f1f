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

// Status is the report of a run, together with the present state of each rank.
type Status struct {
	runreport.Report
	Dir string       `json:"dir"`
	Now []RankStatus `json:"ranks_now"`
	// Gang sums up the figures of the ranks, which were computed at VitalsAt. Both are nil while no
	// gang runs.
	Gang     *vitals.Gang `json:"gang,omitempty"`
	VitalsAt *time.Time   `json:"vitals_at,omitempty"`
}

// RankStatus is the state of one rank of the latest attempt.
type RankStatus struct {
	Rank  int    `json:"rank"`
	Host  string `json:"host"`
	PID   int    `json:"pid,omitempty"`
	State string `json:"state"` // placed, running, or how the rank ended
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
	// Vitals are the rank's figures. They are nil if the rank has ended, or if gangrun knows none.
	Vitals *vitals.Rank `json:"vitals,omitempty"`

	stepped time.Time // when Step was recorded
	behind  bool      // Step and Loss are newer than Vitals
}

// NewStatus returns the status of a run. It computes the status from the report, the events, and v, the figures
// of the gang. v may be nil.
func NewStatus(run home.Run, report runreport.Report, events []job.Event, v *vitals.Vitals) Status {
	return newStatus(run, report, ranksNow(report, events), v)
}

func newStatus(run home.Run, report runreport.Report, ranks []RankStatus, v *vitals.Vitals) Status {
	s := Status{Report: report, Dir: run.Dir, Now: ranks}
	last := report.Last()
	if v == nil || last == nil || v.Attempt != last.Number || last.Ended != nil || report.State.Final() {
		return s
	}
	s.Gang, s.VitalsAt = &v.Gang, &v.At
	for i := range s.Now {
		if r := &s.Now[i]; r.Exit == nil {
			r.Vitals = v.Of(r.Rank)
			r.behind = r.Vitals != nil && r.stepped.After(v.At.Add(-time.Duration(r.Vitals.Age)))
		}
	}
	return s
}

// ranksNow returns the ranks of the latest attempt of a report.
func ranksNow(r runreport.Report, events []job.Event) []RankStatus {
	var f ranksFolder
	for _, e := range events {
		f.add(e)
	}
	return f.now(r)
}

// ranksFolder computes the state of each rank of the latest attempt from the events.
type ranksFolder struct {
	attempt int
	ranks   []RankStatus
}

// now returns the ranks of the latest attempt. r is the report of the same events.
func (f *ranksFolder) now(r runreport.Report) []RankStatus {
	ranks := append([]RankStatus{}, f.ranks...)
	for i := range ranks {
		if r.State == job.StateLost && ranks[i].State == "running" {
			ranks[i].State = "lost"
		}
	}
	return ranks
}

func (f *ranksFolder) add(e job.Event) {
	if e.Attempt > f.attempt {
		*f = ranksFolder{attempt: e.Attempt}
	}
	if e.Attempt == 0 || e.Attempt != f.attempt {
		return
	}
	at := func(rank int) *RankStatus {
		if rank < 0 || rank >= len(f.ranks) {
			return &RankStatus{}
		}
		return &f.ranks[rank]
	}
	switch e.Kind {
	case job.KindPlaced:
		if e.Placement == nil {
			break
		}
		f.ranks = nil
		for _, p := range e.Placement.Ranks {
			f.ranks = append(f.ranks, RankStatus{Rank: p.Rank, Host: p.Host, State: "placed", Step: -1})
		}
	case job.KindStarted:
		s := at(e.Rank)
		s.PID, s.State = e.PID, "running"
	case job.KindProgress:
		if p := e.Progress; p != nil {
			s := at(e.Rank)
			s.stepped = e.Time
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
		f.contact(e)
	}
}

// contact records whether gangrun has contact with the hosts of the ranks.
func (f *ranksFolder) contact(e job.Event) {
	for i := range f.ranks {
		s := &f.ranks[i]
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

// Text prints the status for people. If all is true, it shows every rank even of a large gang.
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
	if last := s.Last(); last != nil {
		if saved := last.Saves.Age(now); saved != "" {
			fmt.Fprintf(w, "saved    %s\n", saved)
		}
	}
	if len(s.Now) == 0 {
		return nil
	}
	return printRanks(w, s.Run, s.Now, all)
}

// Since formats the time from one moment to another for a table.
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
