package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func newScene(t *testing.T, plays ...play) *scene {
	home := t.TempDir()
	s := &scene{
		t:        t,
		spec:     testSpec(),
		surveyor: &fakeSurveyor{facts: soundFacts(2)},
		runner:   &fakeRunner{t: t, plays: plays},
	}
	s.spec.CheckpointDir = filepath.Join(home, "checkpoints")
	s.Preflight = &Preflight{
		Surveyor: s.surveyor, Runner: s.runner,
		Place: func(_ context.Context, ranks int, _ time.Duration, _ func(job.Event)) (job.Placement, func(), error) {
			p, _, err := topology.Place(job.Spec{Ranks: ranks}, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 4}, {Name: "h2", Slots: 4}}}, job.Excluded{})
			return p, func() {}, err
		},
		Diagnose: fakeDiagnose, WorldSize: fakeWorldSize,
		Memory: Memory{Dir: filepath.Join(home, "trials")},
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

func TestTrial(t *testing.T) {
	announced := "one rank on h1 (passes at exit 0, 2 progress lines or 1m0s)"
	announced4 := "4 ranks on h1 and h2 (passes at exit 0, 2 progress lines or 1m0s)"
	ranks := func(n int) func(*scene) { return func(s *scene) { s.spec.Trial.Ranks = n } }
	for _, tt := range []struct {
		name  string
		setup func(*scene)
		plays []play
		want  []string // findings
		said  []string
	}{
		{name: "exit 0", plays: []play{succeeds},
			said: []string{announced, "passed after 1.3 s (exit 0)"}},
		{name: "exit 0 without events", plays: []play{func(g *gang) {
			g.outcome.Exits = []job.Exit{{Status: job.Exited, Host: "h1"}}
		}}, said: []string{announced, "passed after 0.0 s (exit 0)"}},
		{name: "progress", plays: []play{func(g *gang) {
			g.start()
			g.wait(time.Second)
			g.progress(0, 1)
			g.wait(time.Second)
			g.progress(0, 2)
			hangs(g)
		}}, said: []string{announced, "passed after 2.0 s (2 progress lines)"}},
		{name: "a step that is told twice is one", plays: []play{func(g *gang) {
			g.start()
			g.progress(0, 1)
			g.progress(0, 1)
			if g.wait(time.Second) {
				g.outcome.Lines = []job.Line{{Host: "h1", Text: "semantic-error: shapes differ"}}
				g.exits(1)
			}
		}},
			want: []string{"trial error semantic-error h1: the trial failed on 1 rank after 1.0 s: shapes differ"},
			said: []string{announced, "failed after 1.0 s: shapes differ"}},
		{name: "alive", plays: []play{hangs},
			said: []string{announced, "passed after 60.0 s (still running)"}},
		{name: "alive from the start of its ranks", plays: []play{func(g *gang) {
			if g.wait(100 * time.Second) {
				hangs(g)
			}
		}}, said: []string{announced, "passed after 2 min (still running)"}},
		{name: "progress before a failure", plays: []play{func(g *gang) {
			g.start()
			g.progress(0, 1)
			g.progress(0, 2)
			g.exits(1)
		}}, said: []string{announced, "passed after 0.0 s (2 progress lines)"}},
		{name: "settings of its own", setup: func(s *scene) { s.spec.Trial.Steps, s.spec.Trial.Time = 1, job.Duration(3*time.Second) },
			plays: []play{hangs},
			said:  []string{"one rank on h1 (passes at exit 0, 1 progress line or 3s)", "passed after 3.0 s (still running)"}},

		{name: "failure", plays: []play{dies("import-error: no module named torch")},
			want: []string{"trial error import-error h1: the trial failed on 1 rank after 1.0 s: no module named torch"},
			said: []string{announced, "failed after 1.0 s: no module named torch"}},
		{name: "failure of no known cause", plays: []play{func(g *gang) { g.start(); g.exits(3) }},
			want: []string{"trial error unknown : the trial failed on 1 rank after 0.0 s: rank 0 on h1 exited with code 3"},
			said: []string{announced, "failed after 0.0 s: rank 0 on h1 exited with code 3"}},
		{name: "exit 0 that is a failure", plays: []play{func(g *gang) {
			g.start()
			g.exit(job.Exit{Host: "h1", Status: job.Exited, Fault: "it never called MPI_Finalize"})
		}},
			want: []string{"trial error unknown : the trial failed on 1 rank after 0.0 s: rank 0 on h1 exited with code 0, but it never called MPI_Finalize"},
			said: []string{announced, "failed after 0.0 s: rank 0 on h1 exited with code 0, but it never called MPI_Finalize"}},
		{name: "ended by nobody", plays: []play{func(g *gang) { g.start() }},
			want: []string{"trial error unknown : the trial failed on 1 rank after 0.0 s: it ended before it could pass"},
			said: []string{announced, "failed after 0.0 s: it ended before it could pass"}},
		{name: "a failed rank whose gang does not end is ended", plays: []play{func(g *gang) {
			g.start()
			g.outcome.Lines = []job.Line{{Host: "h1", Text: "traceback: boom"}}
			g.exit(job.Exit{Host: "h1", Status: job.Exited, Code: 1})
			<-g.ctx.Done()
		}},
			want: []string{"trial error traceback h1: the trial failed on 1 rank after 60.0 s: boom"},
			said: []string{announced, "failed after 60.0 s: boom"}},

		{name: "too few ranks", plays: []play{dies("assertion: this model needs more ranks")},
			want: []string{`trial warning assertion h1: the program does not run on 1 rank, so that it could not be tried: "assertion: this model needs more ranks"`},
			said: []string{announced, "shows nothing (world-size): this model needs more ranks"}},
		{name: "too little memory", plays: []play{dies("gpu-oom: CUDA out of memory")},
			want: []string{"trial warning gpu-oom h1: the job does not fit on 1 rank, so that it could not be tried: CUDA out of memory"},
			said: []string{announced, "shows nothing (memory): CUDA out of memory"}},
		{name: "too little memory of the host", plays: []play{dies("cpu-oom: killed by the kernel")},
			want: []string{"trial warning cpu-oom h1: the job does not fit on 1 rank, so that it could not be tried: killed by the kernel"},
			said: []string{announced, "shows nothing (memory): killed by the kernel"}},

		{name: "killed, then good", plays: []play{dies("killed: from outside"), succeeds},
			said: []string{announced, "shows nothing (inconclusive): from outside", announced, "passed after 1.3 s (exit 0)"}},
		{name: "killed twice", plays: []play{dies("killed: from outside"), dies("network-error: reset")},
			want: []string{"trial warning network-error h1: the trial was ended twice by what may pass: reset"},
			said: []string{announced, "shows nothing (inconclusive): from outside", announced, "shows nothing (inconclusive): reset"}},
		{name: "killed, and no retries", setup: func(s *scene) { s.spec.Retries = 0 }, plays: []play{dies("killed: from outside")},
			want: []string{"trial error killed h1: the trial failed on 1 rank after 1.0 s: from outside"},
			said: []string{announced, "failed after 1.0 s: from outside"}},
		{name: "killed, then a failure", plays: []play{dies("host-lost: h1 is silent"), dies("semantic-error: bug")},
			want: []string{"trial error semantic-error h1: the trial failed on 1 rank after 1.0 s: bug"},
			said: []string{announced, "shows nothing (inconclusive): h1 is silent", announced, "failed after 1.0 s: bug"}},
		{name: "ranks that never start", plays: []play{func(g *gang) { <-g.ctx.Done(); g.err = g.ctx.Err() }},
			want: []string{"trial warning  : the trial's 1 rank did not start within 2 min, so that the job was not tried"},
			said: []string{announced, "not started within 2 min"}},
		{name: "a rank that cannot be ended", plays: []play{func(g *gang) {
			g.start()
			g.progress(0, 1)
			g.progress(0, 2)
			<-g.ctx.Done()
			g.outcome.Unreaped = []job.Unreaped{{Rank: 0, Host: "h1"}}
		}},
			want: []string{"trial warning  h1: the trial is over, but rank 0 may still be running"},
			said: []string{announced, "passed after 0.0 s (2 progress lines)"}},

		{name: "more ranks", setup: ranks(4), plays: []play{succeeds, succeeds},
			said: []string{announced, "passed after 1.3 s (exit 0)", announced4, "passed after 1.3 s (exit 0)"}},
		{name: "more ranks are not tried after a failure", setup: ranks(4), plays: []play{dies("syntax-error: bad")},
			want: []string{"trial error syntax-error h1: the trial failed on 1 rank after 1.0 s: bad"},
			said: []string{announced, "failed after 1.0 s: bad"}},
		{name: "more ranks fail", setup: ranks(4), plays: []play{succeeds, dies("mpi-error: truncated")},
			want: []string{"trial-ranks error mpi-error h1: the trial failed on 4 ranks after 1.0 s: truncated"},
			said: []string{announced, "passed after 1.3 s (exit 0)", announced4, "failed after 1.0 s: truncated"}},
		{name: "more ranks answer a complaint of too few", setup: ranks(4),
			plays: []play{dies("assertion: needs more ranks"), succeeds},
			said:  []string{announced, "shows nothing (world-size): needs more ranks", announced4, "passed after 1.3 s (exit 0)"}},
		{name: "all ranks are too few", setup: ranks(4),
			plays: []play{succeeds, dies("assertion: needs more ranks")},
			want:  []string{"trial-ranks error assertion h1: the trial failed on 4 ranks after 1.0 s: needs more ranks"},
			said:  []string{announced, "passed after 1.3 s (exit 0)", announced4, "failed after 1.0 s: needs more ranks"}},
		{name: "more, but not all ranks are too few", setup: ranks(2),
			plays: []play{dies("gpu-oom: full"), dies("gpu-oom: full")},
			want:  []string{"trial-ranks warning gpu-oom h1: the job does not fit on 2 ranks, so that it could not be tried: full"},
			said: []string{announced, "shows nothing (memory): full",
				"2 ranks on h1 and h2 (passes at exit 0, 2 progress lines or 1m0s)", "shows nothing (memory): full"}},
		{name: "one step, told by two ranks, is not two", setup: ranks(2), plays: []play{succeeds, func(g *gang) {
			g.start()
			g.progress(0, 1)
			g.progress(1, 1)
			g.wait(time.Second)
			g.progress(1, 2)
			hangs(g)
		}}, said: []string{announced, "passed after 1.3 s (exit 0)",
			"2 ranks on h1 and h2 (passes at exit 0, 2 progress lines or 1m0s)", "passed after 1.0 s (2 progress lines)"}},
		{name: "one of two ranks ends well, the other lives on", setup: ranks(2), plays: []play{succeeds, func(g *gang) {
			g.start()
			g.exit(job.Exit{Rank: 0, Host: "h1", Status: job.Exited})
			<-g.ctx.Done()
		}}, said: []string{announced, "passed after 1.3 s (exit 0)",
			"2 ranks on h1 and h2 (passes at exit 0, 2 progress lines or 1m0s)", "passed after 60.0 s (still running)"}},

		{name: "a job that writes into its own checkpoint directory", plays: []play{func(g *gang) {
			g.start()
			g.exits(0)
		}}, setup: func(s *scene) {
			s.write("old.pt", "1")
			first := s.runner.plays[0]
			s.runner.plays[0] = func(g *gang) { s.write("new.pt", "1"); s.write("old.pt", "22"); first(g) }
		},
			want: []string{"trial-checkpoint-dir warning  : the checkpoint directory CHECKPOINTS changed while the trial ran: new.pt and old.pt"},
			said: []string{announced, "passed after 0.0 s (exit 0)"}},
		{name: "static findings come first", setup: func(s *scene) { s.surveyor.facts[1].Inputs[0].Empty = true },
			plays: []play{dies("traceback: boom")},
			want: []string{`inputs warning  h2: input "/d/a.csv" is empty`,
				"trial error traceback h1: the trial failed on 1 rank after 1.0 s: boom"},
			said: []string{announced, "failed after 1.0 s: boom"}},

		{name: "a static error leaves no trial", setup: func(s *scene) { s.surveyor.facts[0].Program.Executable = false },
			want: []string{`program error permission-error h1: the program "/bin/train" may not be executed: it is not executable`}},
		{name: "off", setup: func(s *scene) { s.spec.Trial.Mode = job.TrialOff }},
		{name: "static only", setup: func(s *scene) { s.spec.Preflight = job.PreflightStatic }},
		{name: "a gang of one is its own trial", setup: func(s *scene) { s.spec.Ranks = 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, tt.plays...)
				if tt.setup != nil {
					tt.setup(s)
				}
				have, err := s.check(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i := range tt.want {
					tt.want[i] = strings.ReplaceAll(tt.want[i], "CHECKPOINTS", quote(s.spec.CheckpointDir))
				}
				if !slices.Equal(have, tt.want) {
					t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(tt.want, "\n"))
				}
				if said := s.said(); !slices.Equal(said, tt.said) {
					t.Errorf("said:\n%s\nwant:\n%s", strings.Join(said, "\n"), strings.Join(tt.said, "\n"))
				}
				if n := len(s.runner.attempts); n != len(tt.plays) {
					t.Errorf("%d attempts, want %d", n, len(tt.plays))
				}
			})
		})
	}
}

func (s *scene) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.spec.CheckpointDir, name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Every category either refuses the gang or does not, and none is forgotten.
func TestPassing(t *testing.T) {
	refused := strings.Fields(`incorrect-inputs semantic-error syntax-error import-error permission-error traceback
		assertion cpu-oom gpu-oom model-diverged output-error core-dump invalid-memory-access cuda-version
		missing-library mpi-error disk-full launch-error unknown`)
	for _, c := range append(job.Categories(), "") {
		if have, want := passing(c), c != "" && !slices.Contains(refused, string(c)); have != want {
			t.Errorf("passing(%q) = %v, want %v", c, have, want)
		}
	}
}

func TestTrialAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, dies("killed: x"), succeeds, succeeds)
		s.spec.Command = []string{"train", "train.py", "--out={{.CheckpointDir}}"}
		s.spec.Env = map[string]string{"A": "1", "B": "2"}
		s.spec.Trial.Args = []string{"--tiny"}
		s.spec.Trial.Env = map[string]string{"B": "3"}
		s.spec.Trial.Ranks = 3
		s.spec.Stdin = job.StdinAll
		s.spec.Output = job.OutputFailed
		if have, err := s.check(t.Context()); err != nil || len(have) > 0 {
			t.Fatal(have, err)
		}
		dirs := make(map[string]bool)
		for i, a := range s.runner.attempts {
			if !a.Trial() || a.Stdin != job.StdinNone || a.Show != job.OutputFailed || a.ResumeFrom != "" ||
				a.Steps != 2 || a.Grace != s.spec.Grace || a.Workdir != "/w" {
				t.Errorf("attempt %d: %+v", i, a)
			}
			if want := []string{"train", "train.py", "--out={{.CheckpointDir}}", "--tiny"}; !slices.Equal(a.Command, want) {
				t.Errorf("command %q", a.Command)
			}
			if len(a.Env) != 2 || a.Env["A"] != "1" || a.Env["B"] != "3" {
				t.Errorf("environment %v", a.Env)
			}
			if filepath.Dir(a.CheckpointDir) != s.Scratch || dirs[a.CheckpointDir] {
				t.Errorf("checkpoint directory %q", a.CheckpointDir)
			}
			dirs[a.CheckpointDir] = true
		}
		var where []string
		for _, a := range s.runner.attempts {
			rel, _ := filepath.Rel(s.LogDir, a.LogDir)
			where = append(where, fmt.Sprint(a.Run, " ", rel, " ", len(a.Placement.Ranks)))
		}
		if want := []string{"r1 . 1", "r1-trial2 trial2 1", "r1-trial3 trial3 3"}; !slices.Equal(where, want) {
			t.Errorf("attempts %q, want %q", where, want)
		}
		if s.spec.Env["B"] != "2" {
			t.Error("the spec's own environment was changed")
		}
	})
}

// runnerFunc is a Runner.
type runnerFunc func(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)

func (f runnerFunc) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	return f(ctx, a, emit)
}

// What a trial's ranks did in time counts, though gangrun itself comes to it only when
// the time is over.
func TestTrialToldInTime(t *testing.T) {
	exit := job.Exit{Status: job.Exited, Code: 1}
	for name, c := range map[string]struct {
		slow job.Kind // after which event gangrun stands still
		ends []job.Event
		want string
	}{
		"a failure":      {job.KindWireup, []job.Event{{Kind: job.KindExit, Exit: &exit}}, ""},
		"its end":        {job.KindWireup, nil, ""},
		"that it starts": {job.KindStarted, []job.Event{{Kind: job.KindAllStarted}}, "still running"},
	} {
		for range 20 { // either is first by chance
			synctest.Test(t, func(t *testing.T) {
				run := func(ctx context.Context, _ job.Attempt, emit func(job.Event)) (job.Outcome, error) {
					emit(job.Event{Kind: job.KindStarted})
					if c.slow == job.KindWireup {
						emit(job.Event{Kind: job.KindAllStarted})
						emit(job.Event{Kind: job.KindWireup, Wireup: &job.Wireup{}})
					}
					for _, e := range c.ends {
						emit(e)
					}
					if c.want != "" {
						<-ctx.Done()
					}
					return job.Outcome{}, nil
				}
				a := job.Attempt{Placement: job.Placement{Ranks: make([]job.Rank, 1)}}
				got, err := try(t.Context(), runnerFunc(run), a, 2, time.Minute, func(e job.Event) {
					if e.Kind == c.slow {
						time.Sleep(time.Hour)
					}
				})
				if err != nil || got.passed != c.want || got.late {
					t.Fatalf("%s: %+v, %v, want that it passed for %q", name, got, err, c.want)
				}
			})
		}
	}
}

func TestTrialCommandReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, succeeds)
		s.spec.Trial.Command, s.spec.Trial.Args = []string{"smoke"}, []string{"-q"}
		s.spec.CheckpointDir = ""
		if _, err := s.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		a := s.runner.attempts[0]
		if !slices.Equal(a.Command, []string{"smoke", "-q"}) || a.CheckpointDir != "" {
			t.Errorf("attempt %+v", a)
		}
	})
}

func TestTrialForwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(g *gang) {
			g.emit(job.Event{Kind: job.KindHost, Host: "h1"})
			g.start()
			g.progress(0, 1)
			g.exits(0)
		})
		s.Now = func() time.Time { return noon }
		if _, err := s.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, e := range s.events {
			kinds = append(kinds, string(e.Kind))
			if e.Attempt != 0 || e.Kind == job.KindTrial && e.Time != noon {
				t.Errorf("event %+v", e)
			}
		}
		if want := "trial started exit trial"; strings.Join(kinds, " ") != want {
			t.Errorf("events %q, want %q", kinds, want)
		}
	})
}

func TestTrialCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s := newScene(t, hangs)
		begun := time.Now()
		have, err := s.check(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || len(have) > 0 {
			t.Errorf("have %q, %v", have, err)
		}
		if d := time.Since(begun); d != 5300*time.Millisecond {
			t.Errorf("it took %v: not until its rank was gone", d)
		}
	})
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
