package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/job"
)

// TestKnown tests histories that know the job, and histories that do not.
func TestKnown(t *testing.T) {
	const text = "run r0 of this job failed at 2026-01-01 08:00:00 with semantic-error (python-key-error): KeyError: 'x'; its program, code, arguments, environment and inputs have not changed since"
	at := time.Date(2026, 1, 1, 8, 0, 0, 0, time.Local)
	entry := history.Entry{Run: "r0", Ended: at, Failure: history.Failure{Category: job.SemanticError, Signature: "python-key-error", Text: "KeyError: 'x'"}}
	broken := failure.Hinted("look at the file", "the history cannot be read")
	for name, tt := range map[string]struct {
		change func(*scene)
		ok     bool
		err    error
		want   []string
		trial  bool // a trial was made
		asked  bool // the history was asked
	}{
		"known":      {nil, true, nil, []string{"known-failure warning semantic-error known-failure " + text}, true, true},
		"refused":    {func(s *scene) { s.spec.RefuseKnown = true }, true, nil, []string{"known-failure error semantic-error known-refused " + text}, false, true},
		"not known":  {func(s *scene) { s.spec.RefuseKnown = true }, false, nil, nil, true, true},
		"unreadable": {func(s *scene) { s.spec.RefuseKnown = true }, false, broken, []string{"known-failure warning - - whether this job has failed before is not known: the history cannot be read"}, true, true},
		"a pipe":     {func(s *scene) { s.Input = UnknownInput }, true, nil, nil, true, false},
		"no digest":  {func(s *scene) { s.surveyor.facts[0].Program.SHA256 = "" }, true, nil, nil, true, false},
		"the static checks fail": {func(s *scene) { s.surveyor.facts[1].Workdir.Kind = job.ErrorMissing }, true, nil,
			[]string{`workdir error incorrect-inputs workdir-missing the working directory "/w" does not exist`}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, succeeds)
			if tt.change != nil {
				tt.change(s)
			}
			var asked []string
			s.Known = func(_ context.Context, fingerprint string) (history.Entry, bool, error) {
				asked = append(asked, fingerprint)
				return entry, tt.ok, tt.err
			}
			var events []job.Event
			findings, err := s.Check(t.Context(), s.spec, func(e job.Event) { events = append(events, e) })
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, f := range findings {
				category, signature := "-", "-"
				if f.Cause != nil {
					category, signature = string(f.Cause.Category), f.Cause.Signature
				}
				if f.Hint == "" || strings.ContainsAny(f.Text+f.Hint, "{}") {
					t.Errorf("finding %+v", f)
				}
				have = append(have, strings.Join([]string{f.Check, string(f.Severity), category, signature, f.Text}, " "))
			}
			if !slices.Equal(have, tt.want) {
				t.Errorf("have %q\nwant %q", have, tt.want)
			}
			if made := len(s.runner.attempts) > 0; made != tt.trial {
				t.Errorf("a trial was made: %v", made)
			}
			if (len(asked) == 1) != tt.asked || tt.asked && (events[0].Kind != job.KindFingerprint || events[0].Text != asked[0]) {
				t.Errorf("asked for %q; events %+v", asked, events)
			}
			// The user gets the finding before the trial.
			if finding := len(findings) > 0 && findings[0].Check == CodeKnown; finding && (events[1].Kind != job.KindFinding || events[1].Finding.Text != findings[0].Text) {
				t.Errorf("events %+v", events)
			}
		})
	}
	t.Run("cancelled meanwhile", func(t *testing.T) {
		s := newScene(t)
		s.spec.Trial.Mode = job.TrialOff
		ctx, cancel := context.WithCancel(t.Context())
		s.Known = func(context.Context, string) (history.Entry, bool, error) {
			cancel()
			return history.Entry{}, false, errors.New("cancelled")
		}
		if findings, err := s.Check(ctx, s.spec, func(job.Event) {}); len(findings) > 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", findings, err)
		}
	})
}
