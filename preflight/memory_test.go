package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestMemoryLifetime(t *testing.T) {
	m := Memory{Dir: filepath.Join(t.TempDir(), "home", "trials")}
	if _, ok := m.Recall("k", noon); ok {
		t.Error("recalled what was never remembered")
	}
	if err := m.Remember("k", Passed{Time: noon}); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]bool{
		0: true, Lifetime - 1: true, Lifetime: false, -time.Second: false,
	} {
		passed, ok := m.Recall("k", noon.Add(after))
		if ok != want || ok && !passed.Time.Equal(noon) {
			t.Errorf("after %v: %v, %v", after, passed, ok)
		}
	}
	if _, ok := m.Recall("other", noon); ok {
		t.Error("recalled another key")
	}
	info, err := os.Stat(filepath.Join(m.Dir, "k.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
}

// What the trial showed about MPI is kept with it. An entry of a gangrun that did
// not keep it is one of a trial that showed nothing.
func TestMemoryWireup(t *testing.T) {
	m := Memory{Dir: t.TempDir()}
	up := &job.Wireup{MPI: job.MPINone, In: []int{}, Silent: []int{0}, Library: "/usr/lib/libmpi.so.40", Lasting: true}
	if err := m.Remember("k", Passed{Time: noon, Wireup: up}); err != nil {
		t.Fatal(err)
	}
	if passed, ok := m.Recall("k", noon); !ok || !reflect.DeepEqual(passed.Wireup, up) {
		t.Errorf("recalled %+v, %v", passed.Wireup, ok)
	}
	old := `{"key":"old","passed":"2026-01-01T12:00:00Z"}`
	if err := os.WriteFile(filepath.Join(m.Dir, "old.json"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if passed, ok := m.Recall("old", noon); !ok || !passed.Time.Equal(noon) || passed.Wireup != nil {
		t.Errorf("recalled %+v, %v", passed, ok)
	}
}

func TestMemoryZero(t *testing.T) {
	var m Memory
	if err := m.Remember("k", Passed{Time: noon}); err != nil {
		t.Error(err)
	}
	if _, ok := m.Recall("k", noon); ok {
		t.Error("the zero memory remembers")
	}
}

func TestMemoryCorrupt(t *testing.T) {
	for _, content := range []string{"", "{", "null", `{"key":"other","passed":"2026-01-01T12:00:00Z"}`, `{"key":"k"}`, `{"key":"k","passed":1}`} {
		m := Memory{Dir: t.TempDir()}
		path := filepath.Join(m.Dir, "k.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Recall("k", noon); ok {
			t.Errorf("%q was recalled", content)
		}
		if err := m.Remember("l", Passed{Time: noon}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%q was not swept: %v", content, err)
		}
		if err := m.Remember("k", Passed{Time: noon}); err != nil {
			t.Error(err)
		}
		if _, ok := m.Recall("k", noon); !ok {
			t.Errorf("not remembered over %q", content)
		}
	}
}

func TestMemorySweep(t *testing.T) {
	m := Memory{Dir: t.TempDir()}
	if err := m.Remember("old", Passed{Time: noon.Add(-Lifetime)}); err != nil {
		t.Fatal(err)
	}
	if err := m.Remember("young", Passed{Time: noon.Add(-time.Minute)}); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{".a.1.tmp": 2 * Lifetime, ".b.2.tmp": time.Second} {
		path := filepath.Join(m.Dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, noon.Add(-age), noon.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Remember("new", Passed{Time: noon}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if want := []string{".b.2.tmp", "new.json", "young.json"}; !slices.Equal(have, want) {
		t.Errorf("files %q, want %q", have, want)
	}
}

func TestMemoryConcurrent(t *testing.T) {
	m := Memory{Dir: t.TempDir()}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 5 {
				if err := m.Remember(fmt.Sprint("k", n), Passed{Time: noon.Add(time.Duration(i) * time.Second)}); err != nil {
					t.Error(err)
				}
				m.Recall("k0", noon.Add(time.Minute))
			}
		})
	}
	wg.Wait()
	for n := range 5 {
		if _, ok := m.Recall(fmt.Sprint("k", n), noon.Add(time.Minute)); !ok {
			t.Errorf("k%d is lost", n)
		}
	}
}

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
		time.Sleep(Lifetime)
		again("passed after 1.3 s", 3)
		s.Env = []string{"LD_PRELOAD=/lib/x.so"}
		again("passed after 1.3 s", 4)
		time.Sleep(time.Second)
		s.Env = append(s.Env, "SHLVL=3", "SSH_TTY=/dev/pts/4")
		again("passed 1.0 s ago", 4)
	})
}

// A trial that showed that the job uses Open MPI is remembered with that: the gang
// hears of it as after the trial.
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

// What had something to say, or showed nothing, is tried again.
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

// A trial whose memory cannot be written has passed all the same.
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

// A trial that read a file is repeated for another one, and one that read a pipe always.
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

// A trial that passed on several ranks shows nothing of a gang of fewer.
func TestTrialRememberedByRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, dies("assertion: x"), succeeds, dies("assertion: x"), dies("assertion: x"))
		for i, c := range []struct{ ranks, tried int }{{8, 2}, {3, 2}, {2, 2}, {1, 3}} {
			s.spec.Ranks, s.Alone = c.ranks, c.ranks == 1
			if _, err := s.check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(s.runner.attempts); n != c.tried {
				t.Errorf("run %d, of %d ranks: %d trials, want %d", i, c.ranks, n, c.tried)
			}
		}
	})
}
