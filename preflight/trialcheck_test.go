package preflight

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestTrialAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, dies("killed: x"), dies("assertion: y"), succeeds)
		s.spec.Command = []string{"train", "/d/train.py", "--out={{.CheckpointDir}}", "--data=/d/b.csv"}
		s.spec.Env = map[string]string{"A": "1", "B": "2"}
		s.spec.Trial.Args = []string{"--tiny"}
		s.spec.Trial.Env = map[string]string{"B": "3"}
		s.spec.Stdin = job.StdinAll
		s.spec.Output = job.OutputFailed
		if have, err := s.check(t.Context()); err != nil || len(have) > 0 {
			t.Fatal(have, err)
		}
		for i, a := range s.runner.attempts {
			if !a.Trial() || a.Stdin != job.StdinAll || a.Show != job.OutputFailed || a.ResumeFrom != "" ||
				a.Steps != 2 || a.Grace != s.spec.Grace || a.Workdir != "/w" || !slices.Contains(a.Hints, "WANDB_MODE=disabled") {
				t.Errorf("attempt %d: %+v", i, a)
			}
			if want := append(slices.Clone(s.spec.Command), "--tiny"); !slices.Equal(a.Command, want) {
				t.Errorf("command %q", a.Command)
			}
			if len(a.Env) != 2 || a.Env["A"] != "1" || a.Env["B"] != "3" {
				t.Errorf("environment %v", a.Env)
			}
			want := &job.Containment{Work: []string{"/w", s.spec.CheckpointDir}, Needed: []string{"/d/train.py", "/d/b.csv", "/d/a.csv", "/d/set"}, Empty: s.spec.CheckpointDir}
			if !reflect.DeepEqual(a.Contain, want) || a.CheckpointDir != s.spec.CheckpointDir || a.Watch != nil {
				t.Errorf("contained as %+v, want %+v; checkpoint directory %q", a.Contain, want, a.CheckpointDir)
			}
		}
		var where []string
		for _, a := range s.runner.attempts {
			rel, _ := filepath.Rel(s.LogDir, a.LogDir)
			where = append(where, fmt.Sprint(a.Run, " ", rel, " ", len(a.Placement.Ranks)))
		}
		if want := []string{"r1 . 1", "r1-trial2 trial2 1", "r1-trial3 trial3 2"}; !slices.Equal(where, want) {
			t.Errorf("attempts %q, want %q", where, want)
		}
		if s.spec.Env["B"] != "2" {
			t.Error("the spec's own environment was changed")
		}
	})
}

// TestContained: in a contained trial, the checkpoint directory is not empty if the job needs something in it.
func TestContained(t *testing.T) {
	for _, c := range []struct {
		dir, empty, given string
	}{
		{"/ck", "/ck", "/ck"}, {"/w/ck", "/w/ck", "/w/ck"}, {"", "", ""},
		{"/w", "", "/tmp/gangrun-checkpoints-r1"}, {"/", "", "/tmp/gangrun-checkpoints-r1"}, {"/d", "", "/tmp/gangrun-checkpoints-r1"},
	} {
		spec := testSpec()
		spec.CheckpointDir = c.dir
		have, dir := contained(spec, []string{"train"}, "r1")
		if have.Empty != c.empty || dir != c.given {
			t.Errorf("%q: empty %q, given %q; want %q, %q", c.dir, have.Empty, dir, c.empty, c.given)
		}
	}
}

// TestUncontainedAttempt: the ranks of a trial that is not contained get a checkpoint directory of their own,
// which is removed afterwards. The job's files are watched.
func TestUncontainedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, succeeds)
		s.spec.Trial.Mode, s.Private = job.TrialUncontained, []string{"/home/x/gangrun"}
		out := t.TempDir()
		s.spec.Command = []string{"train", "--out=" + out, "--data", "/proc", out, "/", "/nonexistent", "--flag="}
		s.spec.Inputs = []string{"/proc"}
		if have, err := s.check(t.Context()); err != nil || len(have) > 0 {
			t.Fatal(have, err)
		}
		a := s.runner.attempts[0]
		want := &job.FileWatch{Dirs: []string{"/w", out, s.spec.CheckpointDir}, But: s.Private}
		if a.Contain != nil || filepath.Dir(a.CheckpointDir) != s.Scratch || !reflect.DeepEqual(a.Watch, want) {
			t.Errorf("attempt %+v", a)
		}
	})
}

func TestTrialStdin(t *testing.T) {
	for _, c := range []struct {
		spec  job.Stdin
		ranks int
		want  job.Stdin
	}{
		{job.StdinAll, 1, job.StdinAll}, {job.StdinNone, 2, job.StdinNone}, {job.StdinRank(0), 1, job.StdinRank(0)},
		{job.StdinRank(1), 1, job.StdinNone}, {job.StdinRank(1), 2, job.StdinRank(1)},
	} {
		tr := trial{spec: job.Spec{Stdin: c.spec}}
		if have := tr.stdin(c.ranks); have != c.want {
			t.Errorf("%s of %d ranks: %s, want %s", c.spec, c.ranks, have, c.want)
		}
	}
}

// TestWeigh: what a failure shows depends on its cause, on what the ranks printed, and on how they were
// contained.
func TestWeigh(t *testing.T) {
	missing := job.Cause{Category: job.IncorrectInputs, Signature: "missing-file", Text: "No such file: mesh.part.3"}
	cause := func(c job.Category) job.Cause { return job.Cause{Category: c} }
	one := func(a *job.Attempt) { a.Contain = nil }
	for name, c := range map[string]struct {
		cause  job.Cause
		line   string
		ranks  int
		change func(*job.Attempt)
		mixed  bool
		fewer  bool
		want   judgement
	}{
		"an import, whatever else was said":     {cause(job.ImportError), "set_mempolicy: Operation not permitted", 1, nil, true, true, bad},
		"an attribute":                          {job.Cause{Category: job.SemanticError, Signature: "python-attribute-error"}, "", 1, nil, false, true, few},
		"a missing file":                        {missing, "", 1, nil, false, true, bad},
		"one that is named after the ranks":     {missing, "", 3, nil, false, true, few},
		"the same of the whole gang":            {missing, "", 3, nil, false, false, bad},
		"one that another host may have":        {missing, "", 2, func(a *job.Attempt) { a.Placement.Hosts = make([]job.Host, 2) }, false, true, containing},
		"one where files belong to others":      {missing, "", 1, nil, true, true, containing},
		"one in the empty directory":            {missing, "open(/w/ck/config.json)", 1, nil, false, true, containing},
		"one in it by its name":                 {missing, "open(ck/config.json)", 1, nil, false, true, containing},
		"permission":                            {cause(job.PermissionError), "Permission denied", 1, nil, false, true, bad},
		"permission that one user lacks":        {cause(job.PermissionError), "chown: Operation not permitted", 1, nil, false, true, containing},
		"the same, not contained":               {cause(job.PermissionError), "chown: Operation not permitted", 1, one, false, true, bad},
		"a full layer":                          {cause(job.DiskFull), "", 1, nil, false, true, full},
		"a full disk":                           {cause(job.DiskFull), "", 1, one, false, false, bad},
		"anything of the gang's own size":       {cause(job.Assertion), "", 4, nil, false, false, bad},
		"the same where files belong to others": {cause(job.Assertion), "", 4, nil, true, false, containing},
	} {
		a := job.Attempt{Placement: job.Placement{Ranks: make([]job.Rank, c.ranks), Hosts: make([]job.Host, 1)}, Contain: &job.Containment{Empty: "/w/ck"}}
		if c.change != nil {
			c.change(&a)
		}
		o := job.Outcome{Mixed: c.mixed, Lines: []job.Line{{Text: c.line}}}
		if have := weigh(c.cause, o, a, c.fewer); have != c.want {
			t.Errorf("%s: %s, want %s", name, have, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		gang, first int
		want        []int
	}{
		{2, 0, []int{1, 2}}, {3, 0, []int{1, 2, 3}}, {8, 1, []int{1, 2, 8}}, {8, 2, []int{2, 8}}, {8, 8, []int{8}}, {65, 0, []int{1, 2}}, {65, 3, []int{3}},
	} {
		if have := sizes(job.Spec{Ranks: c.gang, Trial: job.Trial{Ranks: c.first}}); !slices.Equal(have, c.want) {
			t.Errorf("a gang of %d from %d: %v, want %v", c.gang, c.first, have, c.want)
		}
	}
}

// TestTrialToldInTime: what a trial's ranks reported in time counts, even if gangrun reads it only after the
// time limit.
func TestTrialToldInTime(t *testing.T) {
	exit := job.Exit{Status: job.Exited, Code: 1}
	for name, c := range map[string]struct {
		slow job.Kind // the event after which gangrun stands still
		ends []job.Event
		want string
	}{
		"a failure":      {job.KindWireup, []job.Event{{Kind: job.KindExit, Exit: &exit}}, ""},
		"its end":        {job.KindWireup, nil, ""},
		"that it starts": {job.KindStarted, []job.Event{{Kind: job.KindAllStarted}}, "still running"},
	} {
		for range 20 { // it is left to chance which of the two is first
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
