package supervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestDiverged: a run that has diverged resumes from a checkpoint whose numbers are finite. Other runs do not
// look at the numbers.
func TestDiverged(t *testing.T) {
	for what, want := range map[job.Category]string{job.ModelDiverged: "/ckpt/step-20", job.Killed: "/ckpt/step-40"} {
		bad := dies(exited(0, 1), what, 45)
		bad.saves, bad.older = kept(40), []*job.Checkpoint{kept(20)}
		w := newWorld(t, bad, works())
		w.spec.CheckpointDir, w.spec.Policy = "/ckpt", map[job.Category]job.Action{job.ModelDiverged: job.RetryOnce}
		w.checkpoints.infinite = []job.Checkpoint{*kept(40)}
		w.run(t)
		if w.report.State != job.StateSucceeded || len(w.report.Attempts) != 2 || w.report.Attempts[1].ResumeFrom != want {
			t.Errorf("%s: %s, %+v; want a second attempt from %s", what, w.report.State, w.report.Attempts, want)
		}
	}
}

// writing is a launcher whose gangs report that they write checkpoints.
type writing struct {
	*fakeLauncher
	saves  []job.SaveReport
	orders []job.Attempt
}

func (l *writing) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	l.orders = append(l.orders, a)
	return l.fakeLauncher.Run(ctx, a, func(e job.Event) {
		emit(e)
		if e.Kind == job.KindAllStarted {
			for _, r := range l.saves {
				emit(job.Event{Kind: job.KindSave, Attempt: a.Number, Host: "h1", Save: &r, Text: saves.Text(r)})
			}
		}
	})
}

// TestSaveIsKnown: if there is no time to verify the checkpoints when the run must end, the newest one that an agent has
// verified counts as saved.
func TestSaveIsKnown(t *testing.T) {
	for n, code := range []int{93, 75} {
		w := newWorld(t, gang{life: time.Hour})
		w.spec.CheckpointDir, w.spec.Resume, w.spec.ExitCode, w.spec.Timeout = "/ckpt", true, job.ExitVerdict, job.Duration(time.Minute)
		w.supervisor.Launcher = &writing{fakeLauncher: w.launcher, saves: each10(2 * n)}
		w.checkpoints.wait = 10 * time.Second
		w.run(t)
		if saved := w.report.Attempts[0].Saved; *w.report.ExitCode != code || (saved != nil) != (n > 0) {
			t.Errorf("with %d checkpoints: exit code %d (%s), saved %v; want %d\n%s", 2*n, *w.report.ExitCode, w.report.ExitWhy, saved, code, w.notes())
		}
	}
}

// each10 returns good checkpoints that were written every 10 minutes. Each took 4 s, and stopped the training
// for 2 s.
func each10(n int) (all []job.SaveReport) {
	stall := job.Duration(2 * time.Second)
	for i := range n {
		r := job.SaveReport{State: job.SaveComplete, Begun: now.Add(time.Duration(i) * 10 * time.Minute), Write: job.Duration(4 * time.Second), Stall: &stall}
		r.Path, r.Step, r.Bytes = "/ckpt/step", int64(i), 1<<30
		all = append(all, r)
	}
	return all
}

// TestInterval checks what a run says about how often it saves, and what it tells its ranks.
func TestInterval(t *testing.T) {
	failing := saves.Span{Job: `["python" "train.py"]`, Hosts: []string{"h1", "h2"}, Ran: 4 * time.Hour, Failed: true, Write: 4 * time.Second}
	stall := 2 * time.Second
	failing.Stall = &stall
	for name, c := range map[string]struct {
		set   func(*world)
		past  []saves.Span
		err   error
		saves int
		want  *job.SaveInterval
		hints []string // the hints of the first attempt
	}{
		"too few checkpoints": {saves: 2},
		"no directory":        {set: func(w *world) { w.spec.CheckpointDir = "" }, past: []saves.Span{failing}},
		"given": {saves: 3, set: func(w *world) { w.spec.MTBF = job.Duration(4 * time.Hour) },
			want: &job.SaveInterval{Every: job.Duration(10 * time.Minute), Cost: job.Duration(stall), Failures: job.Duration(4 * time.Hour), Source: job.FailuresGiven, Best: job.Duration(4 * time.Minute)}},
		"of the job": {saves: 3, past: []saves.Span{failing, failing, failing}, hints: []string{"GANGRUN_CHECKPOINT_EVERY_S=239"},
			want: &job.SaveInterval{Every: job.Duration(10 * time.Minute), Cost: job.Duration(stall), Failures: job.Duration(4 * time.Hour), Source: job.FailuresOfJob, Count: 3, Best: job.Duration(239 * time.Second)}},
		"usual": {saves: 3, err: errors.New("no history"),
			want: &job.SaveInterval{Every: job.Duration(10 * time.Minute), Cost: job.Duration(stall), Failures: job.Duration(saves.UsualBetween(2)), Source: job.FailuresUsual, Best: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, works())
			l := &writing{fakeLauncher: w.launcher, saves: each10(c.saves)}
			w.supervisor.Launcher = l
			w.spec.CheckpointDir = "/ckpt"
			if c.set != nil {
				c.set(w)
			}
			w.past = func(context.Context) ([]saves.Span, error) { return c.past, c.err }
			w.run(t)
			a := w.report.Attempts[0]
			got := a.Saves.Interval
			if c.want != nil && got != nil {
				if c.want.Best == 0 || (time.Duration(got.Best)-time.Duration(c.want.Best)).Abs() < 2*time.Second {
					c.want.Best = got.Best
				}
			}
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if a.Saves.Good != c.saves || !slices.Equal(l.orders[0].Hints, c.hints) {
				t.Errorf("%d checkpoints, the ranks got %q, want %d and %q", a.Saves.Good, l.orders[0].Hints, c.saves, c.hints)
			}
			text := strings.Join(runreport.Summary(w.report), "\n")
			if strings.Contains(text, "3 good, newest step 2 at ") != (c.saves == 3) || strings.Contains(text, "you save every 10 min, which costs 0.33 %") != (c.want != nil && !saves.Near(*c.want)) {
				t.Errorf("the summary says\n%s", text)
			}
			if strings.Contains(w.notes(), "no history") != (c.err != nil) {
				t.Errorf("notes %q", w.notes())
			}
			if l.orders[0].Saves != (w.spec.CheckpointDir != "") {
				t.Errorf("the checkpoints are watched: %v", l.orders[0].Saves)
			}
		})
	}
}

// TestHintOfRun: a later attempt knows the costs of an earlier attempt's checkpoints.
func TestHintOfRun(t *testing.T) {
	w := newWorld(t, dies(signalled(1, 9), job.Killed, 45), works())
	l := &writing{fakeLauncher: w.launcher, saves: each10(1)}
	w.supervisor.Launcher = l
	w.spec.CheckpointDir, w.spec.MTBF = "/ckpt", job.Duration(4*time.Hour)
	w.run(t)
	if len(l.orders) != 2 || l.orders[0].Hints != nil || !slices.Equal(l.orders[1].Hints, []string{"GANGRUN_CHECKPOINT_EVERY_S=239"}) {
		t.Errorf("%d attempts: %+v", len(l.orders), l.orders)
	}
}

// TestSpansOfReport checks what the history keeps of a run.
func TestSpansOfReport(t *testing.T) {
	w := newWorld(t, dies(signalled(1, 9), job.Killed, 45), dies(exited(1, 1), job.SemanticError, 50))
	w.supervisor.Launcher = &writing{fakeLauncher: w.launcher, saves: each10(3)}
	w.spec.CheckpointDir, w.spec.Name = "/ckpt", "train"
	w.run(t)
	all := w.report.Spans()
	if len(all) != 2 || !all[0].Failed || all[1].Failed || all[0].Job != "train" || len(all[0].Hosts) == 0 || all[0].Ran <= 0 || all[0].Write != 4*time.Second || *all[0].Stall != 2*time.Second {
		t.Errorf("%+v", all)
	}
}
