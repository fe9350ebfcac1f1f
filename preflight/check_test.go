package preflight

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/memory"
	"github.com/gangrun/gangrun/topology"
)

// scene is a job with everything that a preflight of it needs.
type scene struct {
	*Preflight
	t        *testing.T
	spec     job.Spec
	surveyor *fakeSurveyor
	runner   *fakeRunner
	events   []job.Event
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newScene(t *testing.T, plays ...play) *scene {
	home := t.TempDir()
	s := &scene{
		t:        t,
		spec:     testSpec(),
		surveyor: &fakeSurveyor{facts: soundFacts(2)},
		runner:   &fakeRunner{t: t, plays: plays},
	}
	s.spec.Ranks = 8
	s.spec.CheckpointDir = filepath.Join(home, "checkpoints")
	s.Preflight = &Preflight{
		Surveyor: s.surveyor, Runner: s.runner,
		Place: func(_ context.Context, ranks int, _ time.Duration, _ func(job.Event)) (job.Placement, func(), error) {
			p, _, err := topology.Place(job.Spec{Ranks: ranks}, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 4}, {Name: "h2", Slots: 4}}}, job.Excluded{})
			return p, func() {}, err
		},
		Diagnose: fakeDiagnose, WorldSize: fakeWorldSize,
		Memory: memory.Memory{Dir: filepath.Join(home, "trials")},
		Run:    "r1", LogDir: filepath.Join(home, "0"), Scratch: filepath.Join(home, "scratch"),
	}
	for _, dir := range []string{s.spec.CheckpointDir, s.LogDir, s.Scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// check runs the preflight and returns its findings as lines. It also checks that the preflight has removed
// everything that it made for the trial.
func (s *scene) check(ctx context.Context) ([]string, error) {
	s.t.Helper()
	findings, err := s.Check(ctx, s.spec, func(e job.Event) { s.events = append(s.events, e) })
	var lines []string
	for _, f := range findings {
		checkFinding(s.t, f)
		lines = append(lines, line(f))
	}
	if left, err := os.ReadDir(s.Scratch); err != nil || len(left) > 0 {
		s.t.Errorf("left in scratch: %v %v", left, err)
	}
	return lines, err
}

// said returns the texts of the KindTrial events.
func (s *scene) said() []string {
	var said []string
	for _, e := range s.events {
		if e.Kind == job.KindTrial {
			said = append(said, e.Text)
		}
	}
	return said
}

// runnerFunc is a Runner.
type runnerFunc func(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)

func (f runnerFunc) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	return f(ctx, a, emit)
}

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

// TestRunnerReturnsCancelled: a Runner may return the error of the context if the trial has passed and was
// ended. This is not a failure.
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
