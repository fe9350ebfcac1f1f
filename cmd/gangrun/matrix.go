package main

import (
	"os"

	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/supervisor/runreport"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight"
)

// verboseFlag has the matrix of the hosts shown whatever is in it.
func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show all that the preflight has found on each host, also where no host is odd"}
}

// compare puts what the hosts have said side by side, for the user to see when one
// of them is odd or all is wanted, and for the report as JSON.
func (s *session) compare(facts []job.Facts) {
	if len(facts) < 2 {
		return
	}
	m := preflight.Compare(s.spec, facts)
	s.matrix = &m
	if !s.verbose && !m.Odd() {
		return
	}
	for _, line := range m.Lines(s.verbose) {
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
