package controller

import (
	"os"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// compare puts what the hosts have said side by side, for the user to see when one
// of them is odd or all is wanted, and for the report as JSON.
func (s *session) compare(facts []job.Facts) {
	if len(facts) < 2 {
		return
	}
	m := preflight.Compare(s.spec, facts)
	s.matrix = &m
	if !s.Verbose && !m.Odd() {
		return
	}
	for _, line := range m.Lines(s.Verbose) {
		s.show.Say(text.Printable(line))
	}
}

// printReport prints a report as JSON, and the matrix of the hosts with it.
func (s *session) printReport(r runreport.Report) error {
	return view.JSON(os.Stdout, struct {
		runreport.Report
		Matrix *preflight.Matrix `json:"matrix,omitempty"`
	}{r, s.matrix})
}
