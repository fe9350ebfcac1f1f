package preflight

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/job"
)

func TestTrialRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, succeeds, succeeds, succeeds, succeeds)
		again := func(want string, attempts int) {
			t.Helper()
			s.events = nil
			if have, err := s.check(t.Context()); err != nil || len(have) > 0 {
				t.Fatal(have, err)
			}
			said := s.said()
			if len(s.runner.attempts) != attempts || !strings.HasPrefix(said[len(said)-1], want) {
				t.Errorf("%d attempts, want %d; said %q, want %q", len(s.runner.attempts), attempts, said, want)
			}
		}
		again("passed after 1.3 s", 1)
		time.Sleep(12 * time.Minute)
		again("passed 12 min ago with the same program, arguments and environment; not repeated", 1)
		s.spec.Env = map[string]string{"LR": "0.1"}
		again("passed after 1.3 s", 2)
		time.Sleep(memory.Lifetime)
		again("passed after 1.3 s", 3)
		s.Env = []string{"LD_PRELOAD=/lib/x.so"}
		again("passed after 1.3 s", 4)
		time.Sleep(time.Second)
		s.Env = append(s.Env, "SHLVL=3", "SSH_TTY=/dev/pts/4")
		again("passed 1.0 s ago", 4)
	})
}

// TestTrialRememberedOpenMPI: if a trial showed that the job uses Open MPI, this is remembered. The gang starts
// as it would after the trial.
func TestTrialRememberedOpenMPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &job.Wireup{MPI: job.MPINone, In: []int{}, Silent: []int{0}, Library: "/usr/lib/libmpi.so.40", Lasting: true}
		s := newScene(t, func(g *gang) {
			g.start()
			g.emit(job.Event{Kind: job.KindWireup, Wireup: up})
			g.wait(time.Second)
			g.outcome.Wireup = up
			g.exits(0)
		})
		s.spec.MPI = job.MPIAuto
		for round := range 3 {
			s.events = nil
			if have, err := s.check(t.Context()); err != nil || len(have) > 0 {
				t.Fatal(have, err)
			}
			var wired []job.Event
			for _, e := range s.events {
				if e.Kind == job.KindWireup {
					wired = append(wired, e)
				}
			}
			if len(wired) != 1 || wired[0].Attempt != 0 || !reflect.DeepEqual(wired[0].Wireup, up) {
				t.Errorf("round %d: wire-up events %+v", round, wired)
			}
			if said := s.said(); !slices.Contains(said, "it uses Open MPI (/usr/lib/libmpi.so.40), which the gang is started with, then") {
				t.Errorf("round %d: said %q", round, said)
			}
		}
		if n := len(s.runner.attempts); n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
	})
}

// TestTrialNotRemembered: a trial that had findings, or that showed nothing, is repeated.
func TestTrialNotRemembered(t *testing.T) {
	for name, tt := range map[string]struct {
		play  play
		setup func(*scene)
	}{
		"failed":          {play: dies("import-error: bug")},
		"too little":      {play: dies("gpu-oom: full")},
		"unknown program": {play: succeeds, setup: func(s *scene) { s.surveyor.facts[0].Program.SHA256, s.surveyor.facts[1].Program.SHA256 = "", "" }},
		"uncontained":     {play: func(g *gang) { g.err = &job.UncontainedError{Host: "h1", Reason: "cannot"} }},
		"files changed": {play: func(g *gang) {
			succeeds(g)
			g.outcome.Changed = []job.Changed{{Host: "h1", Made: []string{"/w/x"}}}
		}, setup: func(s *scene) { s.spec.Trial.Mode = job.TrialUncontained }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, tt.play, tt.play)
				if tt.setup != nil {
					tt.setup(s)
				}
				for range 2 {
					if _, err := s.check(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if n := len(s.runner.attempts); n != 2 {
					t.Errorf("%d attempts, want 2", n)
				}
			})
		})
	}
}

// TestTrialMemoryBroken: a trial has passed even if this cannot be written to the Memory.
func TestTrialMemoryBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, succeeds)
		s.Memory.Dir = filepath.Join(s.LogDir, "file")
		if err := os.WriteFile(s.Memory.Dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		have, err := s.check(t.Context())
		said := s.said()
		if err != nil || len(have) > 0 || !strings.HasPrefix(said[len(said)-1], "passed, but cannot be remembered: ") {
			t.Errorf("have %q, %v, said %q", have, err, said)
		}
	})
}

// TestTrialRememberedByInput: a trial that read a file is repeated if the file is another one. A trial that
// read a pipe is always repeated.
func TestTrialRememberedByInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, succeeds, succeeds, succeeds, succeeds, succeeds)
		for i, c := range []struct {
			input string
			tried int
		}{{"", 1}, {"", 1}, {"file 1", 2}, {"file 1", 2}, {"file 2", 3}, {UnknownInput, 4}, {UnknownInput, 5}, {"", 5}} {
			s.Input = c.input
			if have, err := s.check(t.Context()); err != nil || len(have) > 0 {
				t.Fatal(have, err)
			}
			if n := len(s.runner.attempts); n != c.tried {
				t.Errorf("run %d, with input %q: %d trials, want %d", i, c.input, n, c.tried)
			}
		}
	})
}

// TestTrialRememberedByRanks: a trial that passed on several ranks does not count for a gang of fewer ranks.
func TestTrialRememberedByRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, dies("assertion: x"), succeeds, dies("assertion: x"), dies("assertion: x"))
		for i, c := range []struct{ ranks, tried int }{{8, 2}, {3, 2}, {2, 2}, {1, 3}} {
			s.spec.Ranks, s.Gang.None = c.ranks, c.ranks == 1
			if _, err := s.check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(s.runner.attempts); n != c.tried {
				t.Errorf("run %d, of %d ranks: %d trials, want %d", i, c.ranks, n, c.tried)
			}
		}
	})
}
