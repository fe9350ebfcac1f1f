package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

func TestTrial(t *testing.T) {
	announced := "one rank on h1 (passes at exit 0, 2 progress lines or 1m0s)"
	announced2 := "2 ranks on h1 and h2 (passes at exit 0, 2 progress lines or 1m0s)"
	announced4 := "4 ranks on h1 and h2 (passes at exit 0, 2 progress lines or 1m0s)"
	announced8 := "8 ranks on h1 and h2 (passes at exit 0, 2 progress lines or 1m0s)"
	announced1x2 := "2 ranks on h1 (passes at exit 0, 2 progress lines or 1m0s)"
	announced1x8 := "8 ranks on h1 (passes at exit 0, 2 progress lines or 1m0s)"
	ranks := func(n int) func(*scene) { return func(s *scene) { s.spec.Trial.Ranks = n } }
	uncontained := func(s *scene) { s.spec.Trial.Mode = job.TrialUncontained }
	oneHost := func(s *scene) {
		s.Place = func(_ context.Context, ranks int, _ time.Duration, _ func(job.Event)) (job.Placement, func(), error) {
			p, _, err := topology.Place(job.Spec{Ranks: ranks}, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 8}}}, job.Excluded{})
			return p, func() {}, err
		}
	}
	exits := func(code int) play { return func(g *gang) { g.start(); g.exits(code) } }
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
				g.outcome.Lines = []job.Line{{Host: "h1", Text: "import-error: nothing"}}
				g.exits(1)
			}
		}},
			want: []string{"trial error import-error h1: the trial failed on 1 rank after 1.0 s: nothing"},
			said: []string{announced, "failed after 1.0 s: nothing"}},
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
		{name: "failure that fewer ranks may cause, and not more", plays: []play{dies("semantic-error: list index out of range"), succeeds},
			said: []string{announced, "failed after 1.0 s; it may need more ranks: list index out of range", announced2, "passed after 1.3 s (exit 0)"}},
		{name: "failure that fewer ranks may cause", plays: []play{dies("semantic-error: boom"), dies("semantic-error: boom")},
			want: []string{"trial-ranks warning semantic-error h1: the trial failed on 2 ranks after 1.0 s; the gang of 8 ranks may still work: boom"},
			said: []string{announced, "failed after 1.0 s; it may need more ranks: boom", announced2, "failed after 1.0 s; it may need more ranks: boom"}},
		{name: "failure of a gang that fits on one host", setup: oneHost,
			plays: []play{dies("semantic-error: boom"), dies("semantic-error: boom"), dies("semantic-error: bang")},
			want:  []string{"trial-ranks error semantic-error h1: the trial failed on 8 ranks after 1.0 s: bang"},
			said: []string{announced, "failed after 1.0 s; it may need more ranks: boom", announced1x2, "failed after 1.0 s; it may need more ranks: boom",
				announced1x8, "failed after 1.0 s: bang"}},
		{name: "a gang that fits on one host and does better there", setup: oneHost,
			plays: []play{dies("semantic-error: boom"), dies("mpi-error: invalid rank"), succeeds},
			said: []string{announced, "failed after 1.0 s; it may need more ranks: boom", announced1x2, "failed after 1.0 s; it may need more ranks: invalid rank",
				announced1x8, "passed after 1.3 s (exit 0)"}},
		{name: "a gang of two", setup: func(s *scene) { oneHost(s); s.spec.Ranks = 2 }, plays: []play{dies("assertion: x"), dies("assertion: y")},
			want: []string{"trial-ranks error assertion h1: the trial failed on 2 ranks after 1.0 s: y"},
			said: []string{announced, "failed after 1.0 s; it may need more ranks: x", announced1x2, "failed after 1.0 s: y"}},
		{name: "a gang of two on two hosts, which do not see each other's files", setup: func(s *scene) { s.spec.Ranks = 2 },
			plays: []play{dies("assertion: x"), dies("assertion: y")},
			want:  []string{"trial-ranks warning assertion h1: the trial failed on 2 ranks after 1.0 s, perhaps because it was contained: y"},
			said:  []string{announced, "failed after 1.0 s; it may need more ranks: x", announced2, "not conclusive (contained): y"}},
		{name: "a place that has to be waited for", setup: func(s *scene) {
			oneHost(s)
			place := s.Place
			s.Place = func(ctx context.Context, ranks int, limit time.Duration, emit func(job.Event)) (job.Placement, func(), error) {
				if ranks == 8 {
					<-ctx.Done()
					return job.Placement{}, nil, ctx.Err()
				}
				return place(ctx, ranks, limit, emit)
			}
		}, plays: []play{dies("assertion: x"), dies("assertion: x")},
			want: []string{"trial-ranks warning assertion h1: the trial failed on 2 ranks after 1.0 s; the gang of 8 ranks may still work: x"},
			said: []string{announced, "failed after 1.0 s; it may need more ranks: x", announced1x2, "failed after 1.0 s; it may need more ranks: x"}},
		{name: "failure of no known cause", setup: oneHost, plays: []play{exits(3), exits(3), exits(3)},
			want: []string{"trial-ranks error unknown : the trial failed on 8 ranks after 0.0 s: rank 0 on h1 exited with code 3"},
			said: []string{announced, "failed after 0.0 s; it may need more ranks: rank 0 on h1 exited with code 3",
				announced1x2, "failed after 0.0 s; it may need more ranks: rank 0 on h1 exited with code 3",
				announced1x8, "failed after 0.0 s: rank 0 on h1 exited with code 3"}},
		{name: "exit 0 that is a failure", setup: ranks(8), plays: []play{func(g *gang) {
			g.start()
			g.exit(job.Exit{Host: "h1", Status: job.Exited, Fault: "it never called MPI_Finalize"})
		}},
			want: []string{"trial-ranks warning unknown : the trial failed on 8 ranks after 0.0 s, perhaps because it was contained: rank 0 on h1 exited with code 0, but it never called MPI_Finalize"},
			said: []string{announced8, "not conclusive (contained): rank 0 on h1 exited with code 0, but it never called MPI_Finalize"}},
		{name: "ended by nobody", setup: func(s *scene) { oneHost(s); ranks(8)(s) }, plays: []play{func(g *gang) { g.start() }},
			want: []string{"trial-ranks error unknown : the trial failed on 8 ranks after 0.0 s: it ended before it could pass"},
			said: []string{announced1x8, "failed after 0.0 s: it ended before it could pass"}},
		{name: "a failed rank whose gang does not end is ended", plays: []play{func(g *gang) {
			g.start()
			g.outcome.Lines = []job.Line{{Host: "h1", Text: "syntax-error: boom"}}
			g.exit(job.Exit{Host: "h1", Status: job.Exited, Code: 1})
			<-g.ctx.Done()
		}},
			want: []string{"trial error syntax-error h1: the trial failed on 1 rank after 60.0 s: boom"},
			said: []string{announced, "failed after 60.0 s: boom"}},

		{name: "too few ranks, by the program's own word", plays: []play{dies("assertion: this model needs more ranks"), dies("assertion: this model needs more ranks")},
			want: []string{`trial-ranks warning assertion h1: the program does not run on 2 ranks, so that it could not be tried: "assertion: this model needs more ranks"`},
			said: []string{announced, "not conclusive (world-size): this model needs more ranks", announced2, "not conclusive (world-size): this model needs more ranks"}},
		{name: "too little memory", plays: []play{dies("gpu-oom: CUDA out of memory")},
			want: []string{"trial warning gpu-oom h1: the job does not fit on 1 rank, so that it could not be tried: CUDA out of memory"},
			said: []string{announced, "not conclusive (memory): CUDA out of memory"}},
		{name: "too little memory of the host", plays: []play{dies("cpu-oom: killed by the kernel")},
			want: []string{"trial warning cpu-oom h1: the job does not fit on 1 rank, so that it could not be tried: killed by the kernel"},
			said: []string{announced, "not conclusive (memory): killed by the kernel"}},

		{name: "killed, then good", plays: []play{dies("killed: from outside"), succeeds},
			said: []string{announced, "not conclusive (inconclusive): from outside", announced, "passed after 1.3 s (exit 0)"}},
		{name: "killed twice", plays: []play{dies("killed: from outside"), dies("network-error: reset")},
			want: []string{"trial warning network-error h1: the trial was ended by an error that may be temporary: reset"},
			said: []string{announced, "not conclusive (inconclusive): from outside", announced, "not conclusive (inconclusive): reset"}},
		{name: "killed, and no retries", setup: func(s *scene) { s.spec.Retries = 0 }, plays: []play{dies("killed: from outside")},
			want: []string{"trial warning killed h1: the trial was ended by an error that may be temporary: from outside"},
			said: []string{announced, "not conclusive (inconclusive): from outside"}},
		{name: "killed, then a failure", plays: []play{dies("host-lost: h1 is silent"), dies("launch-error: bug")},
			want: []string{"trial error launch-error h1: the trial failed on 1 rank after 1.0 s: bug"},
			said: []string{announced, "not conclusive (inconclusive): h1 is silent", announced, "failed after 1.0 s: bug"}},
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
			want: []string{"trial warning  h1: the trial is over, but its rank 0 may still be running"},
			said: []string{announced, "passed after 0.0 s (2 progress lines)"}},
		{name: "a rank that waits for standard input", plays: []play{func(g *gang) {
			g.start()
			g.wait(2 * time.Second)
			g.emit(job.Event{Kind: job.KindStdin, Host: "h1"})
			hangs(g)
		}},
			want: []string{"trial warning  : the trial on 1 rank was ended after 2.0 s: the program waits for standard input, which is kept for the gang"},
			said: []string{announced, "ended after 2.0 s: the program waits for standard input, which is kept for the gang"}},

		{name: "more ranks from the start", setup: ranks(4), plays: []play{succeeds},
			said: []string{announced4, "passed after 1.3 s (exit 0)"}},
		{name: "more ranks fail", setup: ranks(4), plays: []play{dies("mpi-error: truncated")},
			want: []string{"trial-ranks warning mpi-error h1: the trial failed on 4 ranks after 1.0 s; the gang of 8 ranks may still work: truncated"},
			said: []string{announced4, "failed after 1.0 s; it may need more ranks: truncated"}},
		{name: "more ranks fail by what every gang meets", setup: ranks(4), plays: []play{dies("missing-library: libfoo")},
			want: []string{"trial-ranks error missing-library h1: the trial failed on 4 ranks after 1.0 s: libfoo"},
			said: []string{announced4, "failed after 1.0 s: libfoo"}},
		{name: "one step, told by two ranks, is not two", setup: ranks(2), plays: []play{func(g *gang) {
			g.start()
			g.progress(0, 1)
			g.progress(1, 1)
			g.wait(time.Second)
			g.progress(1, 2)
			hangs(g)
		}}, said: []string{announced2, "passed after 1.0 s (2 progress lines)"}},
		{name: "one of two ranks ends well, the other lives on", setup: ranks(2), plays: []play{func(g *gang) {
			g.start()
			g.exit(job.Exit{Rank: 0, Host: "h1", Status: job.Exited})
			<-g.ctx.Done()
		}}, said: []string{announced2, "passed after 60.0 s (still running)"}},

		{name: "the layer is full", plays: []play{dies("disk-full: no room")},
			want: []string{"trial warning disk-full h1: the trial on 1 rank wrote more than the memory for the files of trials can hold, so it does not show whether the job works: no room"},
			said: []string{announced, "not conclusive (full): no room"}},
		{name: "what only a contained rank meets", plays: []play{dies("permission-error: chown: Operation not permitted")},
			want: []string{"trial warning permission-error h1: the trial failed on 1 rank after 1.0 s, perhaps because it was contained: chown: Operation not permitted"},
			said: []string{announced, "not conclusive (contained): chown: Operation not permitted"}},
		{name: "the same where it is not contained", setup: uncontained, plays: []play{dies("permission-error: chown: Operation not permitted")},
			want: []string{"trial error permission-error h1: the trial failed on 1 rank after 1.0 s: chown: Operation not permitted"},
			said: []string{announced, "failed after 1.0 s: chown: Operation not permitted"}},
		{name: "a host that cannot contain the trial", plays: []play{func(g *gang) {
			g.err = fmt.Errorf("wrapped: %w", &job.UncontainedError{Host: "h1", Reason: "cannot make namespaces: operation not permitted"})
		}},
			want: []string{"trial warning  h1: the trial was left out, since what it writes could not be thrown away: h1 cannot make namespaces: operation not permitted"},
			said: []string{announced}},
		{name: "a trial that changes the job's files", setup: uncontained, plays: []play{func(g *gang) {
			g.start()
			g.exits(0)
			g.outcome.Changed = []job.Changed{{Host: "h1", Made: []string{"/w/new.pt", "/w/it's"}, Changed: []string{"/w/old.pt"}, More: 3, Partly: true}}
		}},
			want: []string{
				`trial-files error output-error h1: the trial changed or removed files of the job: "/w/old.pt"`,
				`trial-files error output-error h1: the trial left files behind that the gang might read: "/w/new.pt" and "/w/it's" and 3 more`,
				`trial-files warning  h1: there are too many files in "/w" to see whether the trial changed any`},
			said: []string{announced, "passed after 0.0 s (exit 0)"}},
		{name: "static findings come first", setup: func(s *scene) { s.surveyor.facts[1].Inputs[0].Empty = true },
			plays: []play{dies("import-error: boom")},
			want: []string{`inputs warning  h2: input "/d/a.csv" is empty`,
				"trial error import-error h1: the trial failed on 1 rank after 1.0 s: boom"},
			said: []string{announced, "failed after 1.0 s: boom"}},

		{name: "a static error leaves no trial", setup: func(s *scene) { s.surveyor.facts[0].Program.Executable = false },
			want: []string{`program error permission-error h1: the program "/bin/train" may not be executed: it is not executable`}},
		{name: "off", setup: func(s *scene) { s.spec.Trial.Mode = job.TrialOff }},
		{name: "static only", setup: func(s *scene) { s.spec.Preflight = job.PreflightStatic }},
		{name: "one rank of a gang of eight", setup: func(s *scene) { s.spec.Ranks, s.Gang = 1, Gang{None: true, Ranks: 8} }, plays: []play{dies("assertion: x")},
			want: []string{"trial warning assertion h1: the trial failed on 1 rank after 1.0 s; the gang of 8 ranks may still work: x"},
			said: []string{announced, "failed after 1.0 s; it may need more ranks: x"}},
		{name: "a gang of one is its own trial", setup: func(s *scene) { s.spec.Ranks = 1 }},
		{name: "one rank that no gang follows", setup: func(s *scene) { s.spec.Ranks, s.Gang.None = 1, true }, plays: []play{dies("assertion: x")},
			want: []string{"trial error assertion h1: the trial failed on 1 rank after 1.0 s: x"},
			said: []string{announced, "failed after 1.0 s: x"}},
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

// TestPassing: every category either refuses the gang or does not. The test names all of them.
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
