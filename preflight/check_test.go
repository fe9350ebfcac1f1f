package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestCheckErrors(t *testing.T) {
	broken := errors.New("the agent cannot be started")
	for _, tt := range []struct {
		name  string
		setup func(*scene)
		plays []play
		want  error
		text  string
	}{
		{"survey", func(s *scene) { s.surveyor.err = broken }, nil, broken, "cannot survey the hosts: the agent"},
		{"no facts", func(s *scene) { s.surveyor.facts = nil }, nil, nil, "none answered"},
		{"placement", func(s *scene) {
			s.Place = func(context.Context, int, time.Duration, func(job.Event)) (job.Placement, func(), error) {
				return job.Placement{}, nil, broken
			}
		}, nil, broken, "cannot place a trial of 1 rank: the agent"},
		{"runner", nil, []play{func(g *gang) { g.err = broken }}, broken, "cannot run the trial: the agent"},
		{"runner, once it has passed", nil, []play{func(g *gang) { hangs(g); g.err = broken }}, broken, "cannot run the trial: the agent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, tt.plays...)
				if tt.setup != nil {
					tt.setup(s)
				}
				_, err := s.check(t.Context())
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// A Runner may hand back the context's error once the trial has passed and was
// ended; that is no failure.
func TestRunnerReturnsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(g *gang) { hangs(g); g.err = g.ctx.Err() })
		if have, err := s.check(t.Context()); err != nil || len(have) > 0 {
			t.Errorf("have %q, %v", have, err)
		}
	})
}

func TestSurveyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, succeeds)
		s.spec.Env = map[string]string{"B": "2", "A": "1=x"}
		if _, err := s.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.surveyor.surveys) != 1 {
			t.Fatalf("%d surveys", len(s.surveyor.surveys))
		}
		q := s.surveyor.surveys[0]
		if !slices.Equal(q.Env, []string{"A=1=x", "B=2"}) || !q.Compile || q.Workdir != "/w" ||
			!slices.Equal(q.Command, s.spec.Command) || !slices.Equal(q.Inputs, s.spec.Inputs) || q.CheckpointDir != s.spec.CheckpointDir {
			t.Errorf("survey %+v", q)
		}
	})
}

func TestCheckOff(t *testing.T) {
	s := newScene(t)
	s.spec.Preflight = job.PreflightOff
	if have, err := s.check(t.Context()); err != nil || have != nil || len(s.surveyor.surveys) > 0 {
		t.Errorf("have %q, %v", have, err)
	}
}

func TestCheckCancelledInSurvey(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if have, err := s.check(ctx); err != context.Canceled || have != nil {
		t.Errorf("have %q, %v", have, err)
	}
}
