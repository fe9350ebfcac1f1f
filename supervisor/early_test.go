package supervisor

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/retry"
)

// ckpt returns a checkpoint of a step that was written at the given second of the run.
func ckpt(step int64, second int) *job.Checkpoint {
	return &job.Checkpoint{Path: "/ckpt/step-" + strings.Repeat("i", int(step)), Step: step, Time: time.Date(2000, 1, 1, 0, 0, second, 0, time.UTC)}
}

// shows returns a gang with a sure verdict on its curve. The gang then lives for an hour.
func shows(kind judge.Kind) gang {
	return gang{launch: time.Second, life: time.Hour, steps: -1, curve: job.CurveVerdict{
		Kind: string(kind), Metric: "loss", Since: 5, SinceTime: time.Date(2000, 1, 1, 0, 0, 6, 0, time.UTC), Step: 9, Text: "so it is", Confidence: 0.95, Sure: true,
	}}
}

// TestEarlyStop: what ends a run, in which state and with which code.
func TestEarlyStop(t *testing.T) {
	unsure := shows(judge.Plateau)
	unsure.curve.Sure, unsure.curve.Confidence = false, 0.7
	for _, c := range []struct {
		name  string
		gang  gang
		early job.EarlyStop
		state job.State
		code  int
		cause job.Category
		curve job.EarlyAction // "" if nothing is said
	}{
		{"plateau", shows(judge.Plateau), "plateau=stop", job.StateStoppedEarly, 0, job.StoppedEarly, job.EarlyEnd},
		{"plateau, by default", shows(judge.Plateau), job.DefaultEarlyStop, job.StateSucceeded, 0, "", job.EarlyAdvise},
		{"plateau, not sure", unsure, "stop", job.StateSucceeded, 0, "", job.EarlyAdvise},
		{"plateau, off", shows(judge.Plateau), "plateau=off", job.StateSucceeded, 0, "", ""},
		{"reached", shows(judge.Reached), "stop", job.StateStoppedEarly, 0, job.StoppedEarly, job.EarlyEnd},
		{"flat", shows(judge.Flat), "flat=stop", job.StateStoppedEarly, 1, job.StoppedEarly, job.EarlyEnd},
		{"will miss", shows(judge.WillMiss), "stop", job.StateStoppedEarly, 1, job.StoppedEarly, job.EarlyEnd},
		{"not finite, by default", shows(judge.NotFinite), job.DefaultEarlyStop, job.StateStoppedEarly, 1, job.ModelDiverged, job.EarlyEnd},
		{"diverged, by default", shows(judge.Diverged), "plateau=off", job.StateStoppedEarly, 1, job.ModelDiverged, job.EarlyEnd},
		{"diverged, advise", shows(judge.Diverged), "advise", job.StateSucceeded, 0, "", job.EarlyAdvise},
		{"off", shows(judge.Diverged), "off", job.StateSucceeded, 0, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.gang.saves = ckpt(6, 7)
			c.gang.exits = works().exits
			w := newWorld(t, c.gang)
			w.spec.CheckpointDir, w.spec.EarlyStop = "/ckpt", c.early
			w.run(t)
			r := w.report
			if r.State != c.state || *r.ExitCode != c.code {
				t.Errorf("got %s and %d (%s), want %s and %d\n%s", r.State, *r.ExitCode, r.ExitWhy, c.state, c.code, w.story())
			}
			got := job.Category("")
			if cause := r.Cause(); cause != nil {
				got = cause.Category
			}
			if got != c.cause {
				t.Errorf("the cause is %q, want %q", got, c.cause)
			}
			curves := r.Attempts[0].Curves
			if (c.curve != "") != (len(curves) == 1) || c.curve != "" && curves[0].Action != c.curve {
				t.Errorf("the report has %+v", curves)
			}
			want := 3 + 2 + 1 + 5 // seconds: place, preflight, launch, grace
			if c.state == job.StateSucceeded {
				want += 3600 - 5
			}
			if int(w.took/time.Second) != want {
				t.Errorf("it took %s, want %d s", w.took, want)
			}
			for _, e := range w.events {
				if e.Kind == job.KindStop && (e.Stop != job.StopFailure || e.Text != "so it is") {
					t.Errorf("stopped by %+v", e)
				}
			}
		})
	}
}

// TestAskedBeforeTheEnd checks that gangrun asks the ranks for a checkpoint before it ends their gang, and that it
// waits for the new checkpoint. gangrun must ask only once. It must not ask if the model has diverged, or if it has
// lost its lease of the GPUs.
func TestAskedBeforeTheEnd(t *testing.T) {
	saves := func(g gang) gang {
		g.saves, g.answers, g.exits = ckpt(7, 30), 4200*time.Millisecond, works().exits
		return g
	}
	long := saves(gang{launch: time.Second, life: time.Hour, steps: -1})
	quits := func(g gang) gang { g.quits = true; return g }
	type set = func(*world)
	cancel := func(w *world) { w.cancelAfter, w.signal = time.Minute, syscall.SIGTERM }
	for _, c := range []struct {
		name  string
		gang  gang
		set   set
		asks  int
		took  time.Duration // after the wish
		state job.State
		code  int
	}{
		{"stop", long, cancel, 1, 14500 * time.Millisecond, job.StateCancelled, 143},
		{"stop, and the ranks exit when they have saved", quits(long), cancel, 1, 4200 * time.Millisecond, job.StateCancelled, 143},
		{"stop, and the ranks do not answer", gang{launch: time.Second, life: time.Hour}, cancel, 1, 35 * time.Second, job.StateCancelled, 143},
		{"stop, and they cannot be asked", long, func(w *world) { cancel(w); w.launcher.asked.err = syscall.EIO }, 1, 5 * time.Second, job.StateCancelled, 143},
		{"stop, and the file system is frozen", long, func(w *world) { cancel(w); w.checkpoints.freeze = true }, 1, 40 * time.Second, job.StateCancelled, 143},
		{"time limit", long, func(w *world) { w.spec.Timeout = job.Duration(time.Minute) }, 1, 14500 * time.Millisecond, job.StateFailed, 124},
		{"time limit, and the ranks exit when they have saved", quits(long), func(w *world) {
			w.spec.Timeout, w.spec.ExitCode, w.spec.Resume = job.Duration(time.Minute), job.ExitVerdict, true
		}, 1, 4200 * time.Millisecond, job.StateFailed, 75},
		{"time limit, and it takes long to verify a checkpoint", long, func(w *world) {
			w.spec.Timeout, w.spec.ExitCode, w.spec.Resume, w.checkpoints.wait = job.Duration(time.Minute), job.ExitVerdict, true, 12*time.Second
		}, 1, 36500 * time.Millisecond, job.StateFailed, 75},
		{"preemption", long, func(w *world) { cancel(w); w.supervisor.Batch = func() job.Ended { return job.EndedPreempted } }, 1, 14500 * time.Millisecond, job.StateFailed, 75},
		{"plateau", saves(shows(judge.Plateau)), func(w *world) { w.spec.EarlyStop = "stop" }, 1, -1, job.StateStoppedEarly, 0},
		{"plateau, and the ranks exit when they have saved", quits(saves(shows(judge.Plateau))), func(w *world) { w.spec.EarlyStop = "stop" }, 1, -1, job.StateStoppedEarly, 0},
		{"a diverged model is worth no checkpoint", saves(shows(judge.Diverged)), nil, 0, -1, job.StateStoppedEarly, 1},
		{"a lost lease leaves no time", long, func(w *world) { w.placer.lose, w.spec.Retries = time.Minute, 0 }, 0, -1, job.StateFailed, 75},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.gang)
			w.spec.CheckpointDir, w.spec.BeforeStop = "/ckpt", job.BeforeStopFile
			if c.set != nil {
				c.set(w)
			}
			w.run(t)
			if r := w.report; r.State != c.state || *r.ExitCode != c.code {
				t.Errorf("got %s and %d (%s), want %s and %d\n%s\n%s", r.State, *r.ExitCode, r.ExitWhy, c.state, c.code, w.story(), w.notes())
			}
			if a := &w.launcher.asked; a.asks != c.asks || a.withdrawns != 2 {
				t.Errorf("asked %d times, want %d; withdrawn %d times, want twice", a.asks, c.asks, a.withdrawns)
			}
			if took := w.took - time.Minute; c.took >= 0 && took != c.took {
				t.Errorf("the end took %s, want %s", took, c.took)
			}
		})
	}
}

// partsAsker is an Asker for ranks that write the parts of a checkpoint one after the other.
type partsAsker struct {
	Asker
	write func()
}

// Ask implements Asker.
func (a partsAsker) Ask(ctx context.Context) error { a.write(); return a.Asker.Ask(ctx) }

// TestAskedForAllParts: gangrun waits until no part of the step changes any more, but not longer than the
// limit.
func TestAskedForAllParts(t *testing.T) {
	part := func(name string, bytes int64) saves.Found {
		return saves.Found{Path: "/ckpt/" + name, Step: 7, Bytes: bytes, Files: 1, Unfinished: strings.HasSuffix(name, ".tmp")}
	}
	for name, c := range map[string]struct {
		older  *job.Checkpoint
		writes func(at time.Duration) []saves.Found // after the good one came at 4.2 s
		took   time.Duration                        // without the 5 s until ranks are killed
		note   string
	}{
		"one part":            {ckpt(5, 1), nil, 7500 * time.Millisecond, "there is a new good checkpoint after 7.5s"},
		"one part, the first": {nil, nil, 9500 * time.Millisecond, "there is a new good checkpoint after 9.5s"},
		"a later rank":        {ckpt(5, 1), func(at time.Duration) []saves.Found { return []saves.Found{part("rank1", 9)} }, 9500 * time.Millisecond, ""},
		"a later rank that writes": {ckpt(5, 1), func(at time.Duration) []saves.Found {
			return []saves.Found{part("rank1", int64(min(at, 9*time.Second)))}
		}, 16500 * time.Millisecond, ""},
		"with a temporary name": {ckpt(5, 1), func(at time.Duration) []saves.Found {
			return []saves.Found{part("rank1.tmp", int64(min(at, 9*time.Second)))}
		}, 16500 * time.Millisecond, ""},
		"one that never ends": {ckpt(5, 1), func(at time.Duration) []saves.Found { return []saves.Found{part("rank1", int64(at))} }, 30 * time.Second, "no new good checkpoint was found within 30s"},
		"a checkpoint of a next step": {ckpt(5, 1), func(at time.Duration) []saves.Found {
			return []saves.Found{{Path: "/ckpt/next", Step: 9, Bytes: int64(at), Files: 1}}
		}, 7500 * time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gang{launch: time.Second, life: time.Hour, steps: -1, exits: works().exits, saves: ckpt(7, 30), answers: 4200 * time.Millisecond})
			w.spec.CheckpointDir, w.spec.BeforeStop, w.cancelAfter, w.signal = "/ckpt", job.BeforeStopFile, time.Minute, syscall.SIGTERM
			w.spec.Resume, w.checkpoints.newest = true, c.older
			w.supervisor.Asker = partsAsker{w.supervisor.Asker, func() {
				if c.writes == nil {
					return
				}
				for at := 2 * time.Second; at < 40*time.Second; at += 500 * time.Millisecond {
					time.AfterFunc(4300*time.Millisecond+at, func() {
						w.checkpoints.mu.Lock()
						defer w.checkpoints.mu.Unlock()
						w.checkpoints.parts = c.writes(at)
					})
				}
			}}
			w.run(t)
			if took := w.took - time.Minute - 5*time.Second; took != c.took || !strings.Contains(w.notes(), c.note) {
				t.Errorf("the end took %s, want %s\n%s", took, c.took, w.notes())
			}
		})
	}
}

// TestAskedAgainAndAgain: gangrun does not wait until the limit for ranks that save in each step as long as the
// file asks them.
func TestAskedAgainAndAgain(t *testing.T) {
	w := newWorld(t, gang{launch: time.Second, life: time.Hour, steps: -1, exits: works().exits})
	w.spec.CheckpointDir, w.spec.BeforeStop, w.cancelAfter, w.signal = "/ckpt", job.BeforeStopFile, time.Minute, syscall.SIGTERM
	w.supervisor.Asker = partsAsker{w.supervisor.Asker, func() {
		var older []*job.Checkpoint
		for step := range int64(9) {
			c := ckpt(step+1, 60+4*int(step))
			kept := older
			time.AfterFunc(time.Duration(4*step)*time.Second+200*time.Millisecond, func() { w.checkpoints.put(c, kept) })
			older = append([]*job.Checkpoint{c}, older...)
		}
	}}
	w.run(t)
	if took := w.took - time.Minute - 5*time.Second; took != 5500*time.Millisecond || !strings.Contains(w.notes(), "there is a new good checkpoint after 5.5s: "+ckpt(2, 0).Path) {
		t.Errorf("the end took %s\n%s", took, w.notes())
	}
}

// TestJobThatEndsWhenAsked: a job that was asked for a checkpoint, and has made its last step, has succeeded.
func TestJobThatEndsWhenAsked(t *testing.T) {
	w := newWorld(t, gang{launch: time.Second, life: time.Minute, steps: 100, exits: works().exits})
	w.spec.CheckpointDir, w.spec.BeforeStop, w.cancelAfter = "/ckpt", job.BeforeStopTERM, 50*time.Second
	w.run(t)
	if w.report.State != job.StateSucceeded || w.launcher.asked.asks != 1 {
		t.Errorf("%s, asked %d times", w.report.State, w.launcher.asked.asks)
	}
}

// TestStragglerIsAsked: gangrun asks a gang for a checkpoint before it restarts the gang elsewhere.
func TestStragglerIsAsked(t *testing.T) {
	good := gang{launch: time.Second, life: time.Second, steps: 100, exits: []job.Exit{exited(0, 0), exited(1, 0), exited(2, 0), exited(3, 0)}}
	w := newWorld(t, good, good)
	slow := &slowLauncher{fakeLauncher: w.launcher, lasts: 5 * time.Minute}
	w.supervisor.Launcher, w.spec.Ranks = slow, 4
	w.spec.CheckpointDir, w.spec.BeforeStop = "/ckpt", job.BeforeStopUSR1
	w.spec.Policy = map[job.Category]job.Action{job.Straggler: job.RetryAgain}
	w.launcher.asked.set(func() { w.checkpoints.put(ckpt(8, 40), nil) })
	slow.started = true
	w.run(t)
	if a := &w.launcher.asked; a.asks != 1 || len(w.launcher.runs) != 2 || w.launcher.runs[1].ResumeFrom != ckpt(8, 40).Path {
		t.Errorf("asked %d times, %d attempts, story %s\n%s", a.asks, len(w.launcher.runs), w.story(), w.notes())
	}
}

// TestRetryOnDiverge: the job goes back to a checkpoint from before the rise that has no NaN. It does so as
// often as the user allows.
func TestRetryOnDiverge(t *testing.T) {
	diverges := func(saves ...*job.Checkpoint) gang {
		g := shows(judge.Diverged)
		g.saves, g.older = saves[0], saves[1:]
		return g
	}
	two, three, four, six, late := ckpt(2, 2), ckpt(3, 3), ckpt(4, 4), ckpt(6, 6), ckpt(1, 7)
	late.Step = -1 // its name has none; it is newer than the rise
	again := job.Diverge{Resume: job.DivergeEarlier, SkipSteps: 20, Env: map[string]string{"LR": "1"}, Times: 1}
	lost := dies(signalled(0, 9), job.HostLost, 5)
	for _, c := range []struct {
		name  string
		gangs []gang
		retry job.Diverge
		set   func(*world)
		from  []string // the checkpoint of each attempt, "" for the beginning
		skip  []string // GANGRUN_SKIP_STEPS of each
		state job.State
	}{
		{"once, and it ends well", []gang{diverges(six, four, two), works()}, again, nil, []string{"", four.Path}, []string{"", "20"}, job.StateSucceeded},
		{"without a step in its name", []gang{diverges(late, four), works()}, again, nil, []string{"", four.Path}, []string{"", "20"}, job.StateSucceeded},
		{"one with NaN", []gang{diverges(six, four, two), works()}, again, func(w *world) { w.checkpoints.infinite = []job.Checkpoint{*four} }, []string{"", two.Path}, []string{"", "20"}, job.StateSucceeded},
		{"twice is once too often", []gang{diverges(six, four), diverges(six, four)}, again, nil, []string{"", four.Path}, []string{"", "20"}, job.StateStoppedEarly},
		{"nothing from before", []gang{diverges(six)}, again, nil, []string{""}, []string{""}, job.StateStoppedEarly},
		{"not wanted", []gang{diverges(six, four)}, job.Diverge{Resume: job.DivergeOff, Times: 1}, nil, []string{""}, []string{""}, job.StateStoppedEarly},
		{"a failure later does not bring the spoilt one back", []gang{diverges(six, four), lost, works()}, again, nil, []string{"", four.Path, four.Path}, []string{"", "20", "20"}, job.StateSucceeded},
		{"beyond the checkpoint, nothing is skipped", []gang{diverges(six, three), withSaves(lost, ckpt(9, 50), six, three), works()}, again, nil, []string{"", three.Path, ckpt(9, 50).Path}, []string{"", "20", ""}, job.StateSucceeded},
		{"the job itself says that it has diverged", []gang{withSaves(dies(exited(0, 1), job.ModelDiverged, 5), four), works()}, again, nil, []string{"", four.Path}, []string{"", "20"}, job.StateSucceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.gangs...)
			w.spec.CheckpointDir, w.spec.RetryOnDiverge = "/ckpt", c.retry
			w.spec.Env = map[string]string{"LR": "10", "A": "b"}
			if c.set != nil {
				c.set(w)
			}
			w.run(t)
			if w.report.State != c.state || len(w.launcher.runs) != len(c.from) {
				t.Fatalf("got %s after %d attempts, want %s after %d\n%s\n%s", w.report.State, len(w.launcher.runs), c.state, len(c.from), w.story(), w.notes())
			}
			for i, a := range w.launcher.runs {
				lr := "10"
				if i > 0 {
					lr = "1"
				}
				if a.ResumeFrom != c.from[i] || a.Env[skipSteps] != c.skip[i] || a.Env["LR"] != lr || a.Env["A"] != "b" {
					t.Errorf("attempt %d starts from %q with %v, want from %q, skipping %q", i+1, a.ResumeFrom, a.Env, c.from[i], c.skip[i])
				}
			}
		})
	}
}

// TestNotAsked: gangrun does not ask ranks that hang, ranks whose model is useless, or ranks that the user ends
// at once.
func TestNotAsked(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  bool
	}{
		{Hung{}, false}, {Straggled{}, true}, {order.Interrupted{Now: true}, false}, {order.Interrupted{}, true}, {order.TimeLimit{}, true}, {order.BatchEnd{Ended: job.EndedPreempted}, true},
		{StoppedEarly{job.CurveVerdict{Kind: "not-finite"}}, false}, {StoppedEarly{job.CurveVerdict{Kind: "diverged"}}, false}, {StoppedEarly{job.CurveVerdict{Kind: "reached"}}, true},
	} {
		if got := mayAnswer(c.cause); got != c.want {
			t.Errorf("%#v: %t", c.cause, got)
		}
	}
}

// TestTakeoverOfEarlyStop: a controller that takes over a gang that was being stopped early ends it for the
// same reason.
func TestTakeoverOfEarlyStop(t *testing.T) {
	v := shows(judge.Diverged).curve
	v.Action = job.EarlyEnd
	past := []job.Event{
		{Kind: job.KindPlaced, Attempt: 1, Placement: new(job.Placement)}, {Kind: job.KindAttempt, Attempt: 1}, {Kind: job.KindAllStarted, Attempt: 1},
		{Kind: job.KindCurve, Attempt: 1, Curve: &v},
	}
	spoilt := []job.Checkpoint{*ckpt(6, 6)}
	l := &loop{Supervisor: &Supervisor{}, spec: job.Default()}
	if got := l.restore(past); got.early == nil || got.early.Kind != "diverged" || got.cancelled {
		t.Errorf("restored %+v", got)
	}
	if !l.adopted.knows(past[3]) || l.adopted.knows(job.Event{Kind: job.KindCurve, Curve: &job.CurveVerdict{Kind: "diverged"}}) {
		t.Error("a verdict that was told would be told again, or one that was not sure would hide a sure one")
	}
	past = append(past, job.Event{Kind: job.KindStop, Attempt: 1, Stop: job.StopFailure, Text: v.Text},
		job.Event{Kind: job.KindCause, Attempt: 1, Cause: &job.Cause{Category: job.ModelDiverged, Signature: "diverged", Rank: -1}},
		job.Event{Kind: job.KindVerdict, Attempt: 1, Verdict: &job.Verdict{Action: job.Restart, Avoid: spoilt}})
	l = &loop{Supervisor: &Supervisor{}, spec: job.Default()}
	l.spec.RetryOnDiverge = job.Diverge{Resume: job.DivergeEarlier, SkipSteps: 3, Env: map[string]string{"LR": "1"}, Times: 1}
	l.restore(past)
	if never, _ := retry.Avoided(l.past); len(never) != 1 || !retry.SameCheckpoint(&never[0], &spoilt[0]) {
		t.Errorf("avoids %v", never)
	}
	if env := l.env(); env[skipSteps] != "3" || env["LR"] != "1" {
		t.Errorf("the next attempt has %v", env)
	}
}

func withSaves(g gang, saves ...*job.Checkpoint) gang {
	g.saves, g.older = saves[0], saves[1:]
	return g
}
