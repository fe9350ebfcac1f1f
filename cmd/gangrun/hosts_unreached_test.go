package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestUnreachedHost checks that a run goes on without a host that it does not need and cannot reach, and notes that in
// its records. gangrun preflight must fail instead.
func TestUnreachedHost(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	if err := bed.Host(2).StopSSH(); err != nil {
		t.Fatal(err)
	}
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	does := func(args ...string) (code int, report runreport.Report) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		cmd := bed.Controller().Command(ctx, append([]string{gangrun}, args...)...)
		cmd.Dir = bed.Shared()
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, errs.String())
		}
		return cmd.ProcessState.ExitCode(), report
	}
	noted := func(r runreport.Report) (n int) {
		for _, note := range r.Notes {
			if strings.HasPrefix(note, `not reached, and left out: host "h2" `) {
				n++
			}
		}
		return n
	}
	hosts := []string{"--hosts", "h1:2,h2:2", "-n", "2", "-o", "json", "--", "true"}

	code, report := does(append([]string{"run"}, hosts...)...)
	if code != 0 || noted(report) != 1 || len(report.Preflight) != 0 {
		t.Errorf("the run ended with %d, notes %q, found %+v", code, report.Notes, report.Preflight)
	}
	for _, command := range []string{"report", "status"} {
		if code, report := does(command, "-o", "json"); code != 0 || noted(report) != 1 {
			t.Errorf("gangrun %s ended with %d, notes %q", command, code, report.Notes)
		}
	}

	code, report = does(append([]string{"preflight"}, hosts...)...)
	if code != 75 || report.State != job.StatePreflightFailed || noted(report) != 0 || len(report.Preflight) != 1 {
		t.Fatalf("the preflight ended with %d, %s, notes %q, found %+v", code, report.State, report.Notes, report.Preflight)
	}
	if f := report.Preflight[0]; f.Check != "hosts" || f.Host != "h2" || f.Severity != job.SeverityError || f.Hint == "" {
		t.Errorf("the preflight found %+v", f)
	}
	if code, report := does("preflight", "--hosts", "h2:2", "-n", "2", "-o", "json", "--", "true"); code != 69 || report.State != job.StateNoPlacement {
		t.Errorf("with no host at all it ended with %d, %s", code, report.State)
	}
	if code, report := does("preflight", "--hosts", "h1:2", "-n", "2", "-o", "json", "--", "true"); code != 0 || len(report.Preflight) != 0 {
		t.Errorf("without that host it ended with %d, found %+v", code, report.Preflight)
	}
}
