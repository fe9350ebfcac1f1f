package diagnose

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
)

// maxFlight bounds the lines of evidence about process groups, and about ranks, that come from flight
// recorders.
const maxFlight = 4

// flightSure is the confidence with which the records of the ranks show who did not call a collective.
const flightSure = 0.85

// flight is what the flight recorders of PyTorch show of a job.
type flight struct {
	lines    []job.Line // one a rank
	problems []job.CollectiveProblem
	blamed   []int
}

// newFlight reads the lines that are records. Of several records of a rank, the last one counts.
func newFlight(lines []job.Line) (f flight) {
	var records []job.FlightRecord
	for _, l := range slices.Backward(lines) {
		if l.Record != nil && !slices.ContainsFunc(f.lines, func(o job.Line) bool { return o.Rank == l.Rank }) {
			f.lines, records = append(f.lines, l), append(records, *l.Record)
		}
	}
	f.problems, f.blamed = flightrecord.Analyse(records)
	return f
}

// suspects returns the suspects that the records alone give.
func (f flight) suspects() []*suspect {
	if len(f.blamed) == 0 {
		return nil
	}
	rule := rules.Named("nccl-timeout")
	return []*suspect{{rule: rule, rank: -1, confidence: flightSure, names: map[string]string{"title": "others waited in a collective in vain"}}}
}

// about reports whether the records can add something to a suspect: it must have waited for other
// ranks in vain, and must not itself name the rank for which it waited.
func (f flight) about(s *suspect) bool {
	named := s.sign != nil && s.rule.Groups(s.sign.text)["rank"] != ""
	return len(f.problems) > 0 && !named && (s.rule.Category == job.CollectiveTimeout || s.rule.Category == job.Hang)
}

// blame puts the blame on the rank for which a suspect waited in vain.
func (f flight) blame(s *suspect) {
	if len(f.blamed) == 0 || !f.about(s) {
		return
	}
	s.confidence = max(s.confidence, flightSure)
	if !slices.Contains(f.blamed, s.rank) {
		s.rank, s.host = f.blamed[0], f.line(f.blamed[0]).Host
	}
}

// line returns the record of a rank, as a line of evidence.
func (f flight) line(rank int) job.Line {
	i := slices.IndexFunc(f.lines, func(l job.Line) bool { return l.Rank == rank })
	if i < 0 {
		return job.Line{}
	}
	line := f.lines[i]
	line.Record = nil
	return line
}

// explain adds to a cause in which collective the ranks waited, and what the ranks that are to
// blame did last.
func (f flight) explain(c *job.Cause) {
	var lines []job.Line
	for _, p := range f.problems {
		to := slices.ContainsFunc(slices.Concat(p.Missing, p.Differing), func(r int) bool { return slices.Contains(f.blamed, r) })
		if (to || len(f.blamed) == 0) && len(lines) < maxFlight {
			lines = append(lines, job.Line{Source: job.SourceFlightRecord, Rank: -1, Text: flightrecord.Words(p)})
		}
	}
	c.Text += "; " + lines[0].Text
	for _, r := range f.blamed[:min(len(f.blamed), maxFlight)] {
		if line := f.line(r); line.Text != "" {
			lines = append(lines, line)
		}
	}
	c.Evidence = append(lines, c.Evidence...)
}
