package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/supervisor"
)

// homeDir returns the directory of the runs' home.
func homeDir() (string, error) {
	dir, err := home.Dir(os.Getenv)
	if err != nil {
		return "", &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return dir, nil
}

// onRun is the action of a command about one run.
func onRun(do func(c *cli.Context, run home.Run, asJSON bool) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		asJSON, err := asJSON(c)
		if err != nil {
			return err
		}
		run, err := oneRun(c)
		if err != nil {
			return err
		}
		return ofRun(run, do(c, run, asJSON))
	}
}

// ofRun is the error of a command about a run: where its directory was removed meanwhile,
// that is the reason, whatever could not be read.
func ofRun(run home.Run, err error) error {
	if err = run.Explain(err); errors.As(err, new(*home.RemovedError)) {
		return &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return err
}

// oneRun returns the run that the command's arguments name; none is the newest.
func oneRun(c *cli.Context) (home.Run, error) {
	if c.NArg() > 1 {
		return home.Run{}, failure.Usage("write gangrun "+c.Command.Name+" RUN; gangrun ps lists the runs", "%s is about one run, got %q", c.Command.Name, c.Args().Slice())
	}
	dir, err := homeDir()
	if err != nil {
		return home.Run{}, err
	}
	run, err := home.Find(dir, c.Args().First())
	if err != nil {
		return home.Run{}, &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return run, nil
}

// replay reads a run's journal, as journal.Replay does.
func replay(run home.Run) ([]job.Event, int, error) {
	events, skipped, err := journal.Replay(run.JournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		err = &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("run %s has no journal: %w", run.ID, err), Hint: remains(run)}
	}
	return events, skipped, err
}

// remains says what there is of a run without a journal that could be read.
func remains(run home.Run) string {
	return fmt.Sprintf("gangrun logs %[1]s shows what its ranks have printed, if anything; gangrun clean %[1]s removes it", run.ID)
}

// startLimit is longer than it takes from the making of a run to the first event of
// its journal.
const startLimit = time.Minute

// untold is that the journal of a run, of which some lines could not be read, does not
// tell what the run is.
func untold(run home.Run, events []job.Event, skipped int) error {
	if len(events) == 0 && skipped == 0 && time.Since(run.Created()) < startLimit {
		return &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("run %s has not told what it is yet", run.ID), Hint: "try again in a moment"}
	}
	return &failure.Error{Code: failure.CodeInternal, Err: errors.New(silence(run, events, skipped)), Hint: remains(run)}
}

// silence says why a journal does not tell what its run is.
func silence(run home.Run, events []job.Event, skipped int) string {
	why := "it holds nothing whole, so that the run's start was cut short"
	switch {
	case skipped > 0:
		why = "lines that cannot be read: " + fmt.Sprint(skipped)
	case len(events) > 0:
		why = "its beginning is missing"
	}
	return fmt.Sprintf("the journal of run %s does not tell what the run is: %s", run.ID, why)
}

// readReport folds a run's journal; a run whose controller is gone is lost.
func readReport(run home.Run) (supervisor.Report, []job.Event, error) {
	events, skipped, err := replay(run)
	if err != nil {
		return supervisor.Report{}, nil, err
	}
	r := supervisor.Fold(events)
	if r.Run == "" {
		r.Run = run.ID
		if skipped == 0 && time.Since(run.Created()) >= startLimit {
			r.Notes = append(r.Notes, silence(run, events, skipped))
		}
	}
	if summary, err := run.Summary(); err == nil && !r.State.Final() {
		r.State = summary.State
	}
	if skipped > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("what is told here has gaps: lines of the journal that cannot be read: %d", skipped))
	}
	return r, events, nil
}

// since formats the time between two moments for a table.
func since(from, to time.Time) string {
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
