package flightrecord

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// maxFlight limits the lines of evidence from flight recorders that are about process groups. It also limits those that
// are about ranks.
const maxFlight = 4

// Findings are what the flight recorders of PyTorch show of a job.
type Findings struct {
	lines    []job.Line // one line for each rank
	Problems []job.CollectiveProblem
	Blamed   []int // the ranks that are to blame
}

// Read reads the lines that have records. If a rank has several records, the last one counts.
func Read(lines []job.Line) (f Findings) {
	var records []job.FlightRecord
	for _, l := range slices.Backward(lines) {
		if l.Record != nil && !slices.ContainsFunc(f.lines, func(o job.Line) bool { return o.Rank == l.Rank }) {
			f.lines, records = append(f.lines, l), append(records, *l.Record)
		}
	}
	f.Problems, f.Blamed = Analyse(records)
	return f
}

// Line returns the record of a rank as a line of evidence.
func (f Findings) Line(rank int) job.Line {
	i := slices.IndexFunc(f.lines, func(l job.Line) bool { return l.Rank == rank })
	if i < 0 {
		return job.Line{}
	}
	line := f.lines[i]
	line.Record = nil
	return line
}

// Explain adds evidence to a cause. It says in which collective the ranks waited, and what the ranks that are to blame
// did last.
func (f Findings) Explain(c *job.Cause) {
	var lines []job.Line
	for _, p := range f.Problems {
		to := slices.ContainsFunc(slices.Concat(p.Missing, p.Differing), func(r int) bool { return slices.Contains(f.Blamed, r) })
		if (to || len(f.Blamed) == 0) && len(lines) < maxFlight {
			lines = append(lines, job.Line{Source: job.SourceFlightRecord, Rank: -1, Text: Words(p)})
		}
	}
	c.Text += "; " + lines[0].Text
	for _, r := range f.Blamed[:min(len(f.Blamed), maxFlight)] {
		if line := f.Line(r); line.Text != "" {
			lines = append(lines, line)
		}
	}
	c.Evidence = append(lines, c.Evidence...)
}
