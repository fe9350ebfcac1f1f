package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/refusal"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// historyLimit is how long a run waits for the history. The run does not depend on it.
const historyLimit = 10 * time.Second

// known returns the newest run that has the given fingerprint and that has failed because of its
// inputs or its code. It does not return a run that failed because of a file that has changed since.
func (s *session) known(ctx context.Context, fingerprint string) (history.Entry, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	e, ok, err := history.In(s.home).Failed(ctx, fingerprint, preflight.Lasting())
	return e, ok && e.Unchanged(s.spec.Workdir), err
}

// remember adds the run to the history. A preflight without a gang is added only if it has failed.
func (s *session) remember(r runreport.Report) {
	if s.PreflightOnly && r.State == job.StateSucceeded {
		return
	}
	e := entryOf(r, s.spec.Workdir)
	ctx, cancel := context.WithTimeout(context.Background(), historyLimit)
	defer cancel()
	err := history.In(s.home).Add(ctx, e)
	if err == nil && s.spec.CheckpointDir != "" {
		err = history.In(s.home).AddSpans(ctx, r.Run, e.Ended, r.Spans())
	}
	if err != nil {
		s.lacks(fmt.Sprintf("run %s is not in the history", r.Run), err, failure.Hint(err))
	}
}

// lacks shows a note about what is missing in the records of the run because of an error. If a file system has refused
// a write, the note says why. Otherwise, it has the hint.
func (s *session) lacks(what string, err error, hint string) {
	if cause, ok := refusal.Cause(err); ok {
		what, hint = what+": "+string(cause.Category), cause.Hint
	}
	s.show.Say(fmt.Sprintf("note: %s: %v", what, err))
	s.show.Say("hint: " + hint)
}

// spans returns the attempts of earlier runs.
func (s *session) spans(ctx context.Context) ([]saves.Span, error) {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	return history.In(s.home).Spans(ctx)
}

// divergedBefore reports whether the newest earlier run of the same job ended because its model had diverged. A run is
// of the same job if it has the same name or, if the job has no name, the same command.
func (s *session) divergedBefore(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	entries, err := history.In(s.home).List(ctx, s.spec.Name, maxLooked)
	if err != nil {
		return false
	}
	i := slices.IndexFunc(entries, func(e history.Entry) bool {
		return e.Run != s.run.ID && (s.spec.Name != "" || slices.Equal(e.Command, s.spec.Command))
	})
	return i >= 0 && entries[i].Category == job.ModelDiverged
}

// entryOf returns the entry for a run that has ended. If the run was refused because an earlier run
// had failed, the entry has no fingerprint, because the run shows nothing new about the job.
func entryOf(r runreport.Report, workdir string) history.Entry {
	e := history.Entry{Run: r.Run, Name: r.Name, Command: r.Command, Fingerprint: r.Fingerprint, State: r.State, MayHelp: r.MayHelp,
		Failure: history.Failure{Rank: -1, Step: -1, Text: r.Reason}}
	if r.Ended != nil {
		e.Ended = *r.Ended
	}
	if r.ExitCode != nil {
		e.ExitCode = *r.ExitCode
	}
	if a := r.Last(); a != nil {
		e.Step = a.Step
	}
	if f := job.FirstError(r.Preflight); f != nil && f.Check == preflight.CodeKnown {
		e.Fingerprint = ""
	}
	if c := r.Cause(); c != nil && r.State != job.StateSucceeded {
		e.Category, e.Signature, e.Rank, e.Text = c.Category, c.Signature, c.Rank, cmp.Or(c.Text, r.Reason)
		e.Artefact, e.Mark = c.Artefact, history.MarkOf(c.Artefact, workdir)
	}
	return e
}
