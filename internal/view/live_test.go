package view

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestLastLinesOfNoRank checks that a line of mpirun is shown without a rank.
func TestLastLinesOfNoRank(t *testing.T) {
	var shown strings.Builder
	l := NewLive(Options{Spec: job.Default(), Run: home.Run{ID: "r"}, Screen: screen.New(screen.Options{
		Out: screen.Stream{W: &shown}, Err: screen.Stream{W: &shown}, Ranks: 2, Hosts: true, Prefix: true,
	})})
	defer l.FlushLines(t.Context())
	cause := &job.Cause{Category: job.MPIError, Evidence: []job.Line{
		{Source: job.SourceStderr, Host: "h2", Rank: 1, Text: "a rank's"},
		{Source: job.SourceStderr, Host: "h1", Rank: -1, Text: "mpirun's"},
	}}
	l.Closing(runreport.Report{State: job.StateFailed, Attempts: []runreport.Attempt{{Number: 1, Cause: cause}}}, nil)
	if err := l.Screen.Close(); err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(shown.String(), "[1 h2]! ")
	if lines != "a rank's\ngangrun: on h1: mpirun's\n" {
		t.Errorf("shown at last is %q", shown.String())
	}
}

// TestHealthLines checks how signs of ill health are shown. A sign that two hosts have in common is shown once.
func TestHealthLines(t *testing.T) {
	var shown strings.Builder
	l := NewLive(Options{Spec: job.Default(), Run: home.Run{ID: "r"}, Screen: screen.New(screen.Options{
		Out: screen.Stream{W: &shown}, Err: screen.Stream{W: &shown}, Ranks: 2, Hosts: true, Prefix: true,
	})})
	for _, host := range []string{"h1", "h2"} {
		l.Event(job.Event{Kind: job.KindHealth, Attempt: 1, Host: host, Text: "the server is full", Hint: "free space", Health: &job.Health{Sign: job.HealthDiskFull, Severity: job.SeverityError}})
		l.Event(job.Event{Kind: job.KindHealth, Attempt: 1, Host: host, Text: "an error on " + host, Hint: "replace it", Health: &job.Health{Sign: job.HealthRAM, Severity: job.SeverityNote}})
	}
	l.Event(job.Event{Kind: job.KindGPU, Attempt: 1, Host: "h1", Text: "XID 63", Hint: "reset it", GPU: &job.GPU{Sign: job.GPUXID, XID: 63, Severity: job.SeverityNote}})
	l.Event(job.Event{Kind: job.KindGPU, Attempt: 1, Host: "h1", Text: "XID 79", Hint: "reboot", GPU: &job.GPU{Sign: job.GPUXID, XID: 79}}) // from an older version of gangrun
	l.FlushLines(t.Context())
	if err := l.Screen.Close(); err != nil {
		t.Fatal(err)
	}
	const want = `gangrun: warning: on h1: the server is full
gangrun: hint: free space
gangrun: note: on h1: an error on h1
gangrun: note: on h2: an error on h2
gangrun: note: on h1: XID 63
gangrun: warning: on h1: XID 79
gangrun: hint: reboot
`
	if shown.String() != want {
		t.Errorf("shown is\n%s", shown.String())
	}
	if n := len(l.Report().Attempts[0].Signs); n != 6 {
		t.Errorf("the report has %d signs", n)
	}
}

// TestClosingPlot: the lines of a plot come before the summary.
func TestClosingPlot(t *testing.T) {
	var shown strings.Builder
	l := NewLive(Options{Spec: job.Default(), Run: home.Run{ID: "r"}, Screen: screen.New(screen.Options{Out: screen.Stream{W: &shown}, Err: screen.Stream{W: &shown}, Ranks: 1})})
	defer l.FlushLines(t.Context())
	l.Closing(runreport.Report{State: job.StateSucceeded}, []string{" 1.0 ┼╮", " 0.5 ┤╰─"})
	if err := l.Screen.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(shown.String(), "gangrun:  1.0 ┼╮\ngangrun:  0.5 ┤╰─\ngangrun: run ") {
		t.Errorf("shown at last is %q", shown.String())
	}
}
