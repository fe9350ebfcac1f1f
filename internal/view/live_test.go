package view

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// What mpirun has said belongs to no rank, and is shown as none's.
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
	l.Closing(runreport.Report{State: job.StateFailed, Attempts: []runreport.Attempt{{Number: 1, Cause: cause}}})
	if err := l.Screen.Close(); err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(shown.String(), "[1 h2]! ")
	if lines != "a rank's\ngangrun: on h1: mpirun's\n" {
		t.Errorf("shown at last is %q", shown.String())
	}
}
