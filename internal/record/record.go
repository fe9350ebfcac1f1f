// Package record reads the files of a run: its journal, from which it computes the report, and the latest figures of
// its ranks.
package record

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Events returns the events of a run's journal, and how many of its lines cannot be read.
func Events(run home.Run) ([]job.Event, int, error) {
	events, skipped, err := journal.Replay(run.JournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		err = &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("run %s has no journal: %w", run.ID, err), Hint: remainsHint(run)}
	}
	return events, skipped, err
}

// remainsHint says what is left of a run whose journal cannot be read.
func remainsHint(run home.Run) string {
	return fmt.Sprintf("gangrun logs %[1]s shows what its ranks have printed, if anything; gangrun clean %[1]s removes it", run.ID)
}

// maxStart is longer than it takes from the creation of a run to the first event of its
// journal.
const maxStart = time.Minute

// NoSpec returns the error of a run whose journal has no Spec. skipped is how many of its
// lines cannot be read.
func NoSpec(run home.Run, events []job.Event, skipped int) error {
	if len(events) == 0 && skipped == 0 && time.Since(run.Created()) < maxStart {
		return &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("the journal of run %s does not say yet what the run is", run.ID), Hint: "try again in a moment"}
	}
	return &failure.Error{Code: failure.CodeInternal, Err: errors.New(noSpecText(run, events, skipped)), Hint: remainsHint(run)}
}

// noSpecText says why a journal does not say what its run is.
func noSpecText(run home.Run, events []job.Event, skipped int) string {
	why := "it holds no complete line: the start of the run was cut short"
	switch {
	case skipped > 0:
		why = "lines that cannot be read: " + fmt.Sprint(skipped)
	case len(events) > 0:
		why = "its beginning is missing"
	}
	return fmt.Sprintf("the journal of run %s does not say what the run is: %s", run.ID, why)
}

// Report returns the report of a run and the events of its journal, from which it computes the report. A run that has
// not ended and whose controller is gone has the state job.StateLost.
func Report(run home.Run) (runreport.Report, []job.Event, error) {
	events, skipped, err := Events(run)
	if err != nil {
		return runreport.Report{}, nil, err
	}
	r := runreport.Fold(events)
	if r.Run == "" {
		r.Run = run.ID
		if skipped == 0 && time.Since(run.Created()) >= maxStart {
			r.Notes = append(r.Notes, noSpecText(run, events, skipped))
		}
	}
	if summary, err := run.Summary(); err == nil && !r.State.Final() {
		r.State = summary.State
	}
	if skipped > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("this report has gaps: lines of the journal that cannot be read: %d", skipped))
	}
	return r, events, nil
}

// Spec returns the job that the events of a journal contain, or nil if they contain none.
func Spec(events []job.Event) *job.Spec {
	for _, e := range events {
		if e.Spec != nil {
			return e.Spec
		}
	}
	return nil
}
