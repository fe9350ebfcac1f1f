package preflight

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/job"
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

// check runs the preflight and returns its findings as lines; nothing may be
// left of what it made for the trial.
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
