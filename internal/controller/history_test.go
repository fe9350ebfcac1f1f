package controller

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestEntryOf tests the ends of runs that a history must distinguish.
func TestEntryOf(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.csv"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, code := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 1
	cause := &job.Cause{Category: job.IncorrectInputs, Signature: "bad-file", Rank: 2, Text: "bad data", Artefact: "data.csv"}
	base := func() runreport.Report {
		return runreport.Report{
			Job: runreport.Job{Run: "r1", Name: "digits", Command: []string{"train"}, Fingerprint: "f1"}, State: job.StateFailed,
			End: runreport.End{ExitCode: &code, MayHelp: true, Reason: "a retry cannot fix it"}, Ended: &ended,
			Attempts: []runreport.Attempt{{Number: 1, Cause: cause, Progress: runreport.Progress{Step: 7}}},
		}
	}
	want := history.Entry{Run: "r1", Name: "digits", Command: []string{"train"}, Fingerprint: "f1", State: job.StateFailed, ExitCode: 1, MayHelp: true, Ended: ended,
		Failure: history.Failure{Category: job.IncorrectInputs, Signature: "bad-file", Rank: 2, Step: 7, Text: "bad data", Artefact: "data.csv", Mark: history.MarkOf("data.csv", dir)}}
	for name, tt := range map[string]struct {
		change func(*runreport.Report)
		want   func(*history.Entry)
	}{
		"failed": {func(*runreport.Report) {}, func(*history.Entry) {}},
		"no text of the cause": {func(r *runreport.Report) { r.Attempts[0].Cause = &job.Cause{Category: job.Unknown, Rank: -1} },
			func(e *history.Entry) {
				e.Failure = history.Failure{Category: job.Unknown, Rank: -1, Step: 7, Text: "a retry cannot fix it"}
			}},
		"succeeded after a failure": {func(r *runreport.Report) { r.State, r.Reason = job.StateSucceeded, "every rank ended well" },
			func(e *history.Entry) {
				e.State, e.Failure = job.StateSucceeded, history.Failure{Rank: -1, Step: 7, Text: "every rank ended well"}
			}},
		"no place": {func(r *runreport.Report) { r.State, r.Attempts, r.Reason = job.StateNoPlacement, nil, "no room" },
			func(e *history.Entry) {
				e.State, e.Failure = job.StateNoPlacement, history.Failure{Rank: -1, Step: -1, Text: "no room"}
			}},
		"refused": {func(r *runreport.Report) {
			r.State, r.Attempts = job.StatePreflightFailed, nil
			r.Preflight = []job.Finding{{Check: preflight.CodeKnown, Severity: job.SeverityError, Cause: &job.Cause{Category: job.SemanticError, Signature: "known-refused", Rank: -1, Text: "run r0 failed"}}}
		}, func(e *history.Entry) {
			e.State, e.Fingerprint = job.StatePreflightFailed, ""
			e.Failure = history.Failure{Category: job.SemanticError, Signature: "known-refused", Rank: -1, Step: -1, Text: "run r0 failed"}
		}},
		"warned": {func(r *runreport.Report) {
			r.Preflight = []job.Finding{{Check: preflight.CodeKnown, Severity: job.SeverityWarning, Cause: &job.Cause{Category: job.SemanticError}}}
		}, func(*history.Entry) {}},
	} {
		r, want := base(), want
		tt.change(&r)
		tt.want(&want)
		if got := entryOf(r, dir); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got  %+v\nwant %+v", name, got, want)
		}
	}
}
