package supervisor

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
)

// TestAnswers: how the ranks end after they were asked for a checkpoint decides whether the job has failed.
func TestAnswers(t *testing.T) {
	because := func(x job.Exit, c job.Category) job.Exit { x.Text = string(c); return x }
	aborted := exited(0, 0)
	aborted.Aborted = true
	left := exited(0, 0)
	left.Fault = "it never called MPI_Finalize"
	const failed, stopped = job.StateFailed, job.StateStoppedEarly
	for _, c := range []struct {
		name  string
		how   job.BeforeStop
		exit  job.Exit
		saves bool
		state job.State
		code  int
	}{
		{"code 0", job.BeforeStopUSR1, exited(0, 0), true, stopped, 0},
		{"code 0 without MPI_Finalize", job.BeforeStopUSR1, left, true, stopped, 0},
		{"SIGTERM", job.BeforeStopUSR1, signalled(0, 15), true, stopped, 0},
		{"the signal", job.BeforeStopUSR1, signalled(0, 10), true, stopped, 0},
		{"code 143", job.BeforeStopFile, exited(0, 143), true, stopped, 0},
		{"the code of the signal", job.BeforeStopHUP, exited(0, 129), true, stopped, 0},
		{"code 1 and a checkpoint", job.BeforeStopUSR1, exited(0, 1), true, stopped, 0},
		{"code 1 and no checkpoint", job.BeforeStopUSR1, exited(0, 1), false, failed, 1},
		{"code 1, a checkpoint and a traceback", job.BeforeStopUSR1, because(exited(0, 1), job.Traceback), true, failed, 1},
		{"code 7", job.BeforeStopUSR1, because(exited(0, 7), job.Traceback), true, failed, 7},
		{"code 7 and nothing said", job.BeforeStopUSR1, exited(0, 7), true, failed, 7},
		{"the code of another signal", job.BeforeStopUSR1, exited(0, 139), true, failed, 139},
		{"another signal", job.BeforeStopUSR1, signalled(0, 11), true, failed, 139},
		{"a network error, which may pass", job.BeforeStopUSR1, because(exited(0, 3), job.NetworkError), true, failed, 3},
		{"MPI_Abort(0)", job.BeforeStopUSR1, aborted, true, failed, 255},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := shows(judge.Reached)
			g.answers, g.quits, g.exits = 4200*time.Millisecond, true, []job.Exit{c.exit, stoppedHere(c.exit)}
			if c.saves {
				g.saves = ckpt(7, 30)
			}
			w := newWorld(t, g)
			w.spec.CheckpointDir, w.spec.BeforeStop, w.spec.EarlyStop = "/ckpt", c.how, "stop"
			w.run(t)
			if r := w.report; r.State != c.state || *r.ExitCode != c.code || len(w.launcher.runs) != 1 {
				t.Errorf("got %s and %d (%s) after %d attempts, want %s and %d\n%s\n%s", r.State, *r.ExitCode, r.ExitWhy, len(w.launcher.runs), c.state, c.code, w.story(), w.notes())
			}
			for _, e := range w.events {
				if e.Kind == job.KindStop && c.state == failed && e.Text != c.exit.String() {
					t.Errorf("ended because of %q, not of the rank that failed", e.Text)
				}
			}
		})
	}
}

// stoppedHere returns the exit of the other rank. This rank answers, too, unless the launcher has ended it
// because of the first one.
func stoppedHere(first job.Exit) job.Exit {
	x := exited(1, 0)
	if !first.Good() {
		x = stopped(signalled(1, 15))
	}
	return x
}

// TestFailedAnswerToUser: a rank that fails while gangrun ends the run for the user has failed.
func TestFailedAnswerToUser(t *testing.T) {
	x := exited(0, 7)
	x.Text = string(job.Traceback)
	g := gang{launch: time.Second, life: time.Hour, steps: -1, saves: ckpt(7, 30), answers: 1200 * time.Millisecond, quits: true, exits: []job.Exit{x, stopped(signalled(1, 15))}}
	w := newWorld(t, g)
	w.spec.CheckpointDir, w.spec.BeforeStop, w.cancelAfter, w.signal = "/ckpt", job.BeforeStopUSR1, time.Minute, syscall.SIGTERM
	w.spec.Retries = 0
	w.run(t)
	if r := w.report; r.State != job.StateFailed || *r.ExitCode != 7 || r.Cause() == nil || r.Cause().Category != job.Traceback {
		t.Errorf("got %s and %d (%s), %+v", r.State, *r.ExitCode, r.ExitWhy, r.Cause())
	}
}

// TestGoodForAGoodReason: a run that was stopped early ends with code 0 only if it has a checkpoint of the
// model that was good enough.
func TestGoodForAGoodReason(t *testing.T) { // the verdict is true since step 5, at 6 s
	unnamed := func(second int) *job.Checkpoint { c := ckpt(1, second); c.Step = -1; return c }
	stale := ckpt(9, 7)
	stale.Time = stale.Time.Add(-24 * time.Hour)
	for i, c := range []struct {
		saves    *job.Checkpoint
		older    *job.Checkpoint
		infinite *job.Checkpoint
		notes    []string
		ask      bool
		byEpoch  bool
		code     int
	}{
		{saves: ckpt(5, 7), code: 0},
		{saves: ckpt(4, 7), code: 0}, // written when the verdict was true
		{saves: ckpt(5, 5), code: 0}, // its step is known
		{saves: ckpt(4, 5), code: 1},
		{saves: stale, code: 1},                     // copied there
		{saves: ckpt(9, 3), byEpoch: true, code: 1}, // the step of the checkpoint may be another count
		{saves: ckpt(2, 7), byEpoch: true, code: 0},
		{saves: unnamed(5), code: 0}, // the value may have been noticed later
		{saves: unnamed(3), code: 1},
		{code: 1},
		{saves: ckpt(7, 9), infinite: ckpt(7, 9), code: 1},
		{saves: ckpt(7, 9), older: ckpt(6, 8), infinite: ckpt(7, 9), code: 0},
		{saves: unnamed(1), ask: true, code: 0},                                         // it was not there before
		{saves: ckpt(7, 9), infinite: ckpt(7, 9), ask: true, code: 1},                   // the answer has NaN
		{saves: ckpt(4, 5), notes: []string{"step-7 is truncated"}, ask: true, code: 0}, // the gang went on to save
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			g := shows(judge.Reached)
			g.curve.ByEpoch, g.exits = c.byEpoch, works().exits
			if g.saves = c.saves; c.older != nil {
				g.older = []*job.Checkpoint{c.older}
			}
			w := newWorld(t, g)
			if c.infinite != nil {
				w.checkpoints.infinite = []job.Checkpoint{*c.infinite}
			}
			w.spec.CheckpointDir, w.spec.EarlyStop, w.checkpoints.notes = "/ckpt", "stop", c.notes
			if c.ask {
				w.spec.BeforeStop, w.launcher.gangs[0].answers = job.BeforeStopUSR1, time.Second
			}
			w.run(t)
			r := w.report
			if r.State != job.StateStoppedEarly || *r.ExitCode != c.code {
				t.Errorf("got %s and %d (%s), want %d\n%s", r.State, *r.ExitCode, r.ExitWhy, c.code, w.notes())
			}
			if want := c.code != 0; want != strings.Contains(r.Hint, "before-stop") {
				t.Errorf("the hint is %q", r.Hint)
			}
		})
	}
}

// TestNumbersOfHugeCheckpoints: gangrun reads the numbers in the checkpoint of a run that was stopped early for
// at most worthLook. If that is not enough, a checkpoint counts if gangrun found it complete when the ranks had
// written it.
func TestNumbersOfHugeCheckpoints(t *testing.T) {
	for name, c := range map[string]struct {
		ask    bool
		frozen bool // the search does not end even then
		code   int
		note   string
	}{
		"the ranks were asked":                            {true, false, 0, "/ckpt/step-iiiiiii counts as good"},
		"the ranks were asked, and the directory freezes": {true, true, 0, "/ckpt/step-iiiiiii counts as good"},
		"the ranks were not asked":                        {false, false, 1, `the checkpoints in "/ckpt" could not be looked at: it takes longer than 10m`},
	} {
		t.Run(name, func(t *testing.T) {
			g := shows(judge.Reached) // at 6 s
			g.saves, g.exits = ckpt(7, 9), works().exits
			w := newWorld(t, g)
			w.spec.CheckpointDir, w.spec.EarlyStop = "/ckpt", "stop"
			took := 11*time.Second + worthLook
			if c.ask {
				w.spec.BeforeStop, w.launcher.gangs[0].answers = job.BeforeStopUSR1, 1200*time.Millisecond
				took += 6500 * time.Millisecond
			}
			w.supervisor.Checkpoints = huge{w.checkpoints, c.frozen}
			if w.checkpoints.late = c.frozen; c.frozen {
				took += searchSlack
			}
			w.run(t)
			if r := w.report; r.State != job.StateStoppedEarly || *r.ExitCode != c.code || w.took != took || !strings.Contains(w.notes(), c.note) {
				t.Errorf("got %s and %d (%s) after %s, want %d after %s\n%s", r.State, *r.ExitCode, r.ExitWhy, w.took, c.code, took, w.notes())
			}
		})
	}
}

// huge has checkpoints whose numbers take an hour to read.
type huge struct {
	*fakeCheckpoints
	frozen bool // whatever ctx says
}

// NewestFinite implements Checkpoints.
func (h huge) NewestFinite(ctx context.Context, dir string, not []job.Checkpoint) (*job.Checkpoint, []string, error) {
	if h.frozen {
		ctx = context.WithoutCancel(ctx)
	}
	if !pause(ctx, time.Hour/2) {
		return nil, nil, ctx.Err()
	}
	return h.Newest(ctx, dir, not)
}

// TestBrokenAnswer: if the ranks wrote a broken checkpoint when they were asked, an older checkpoint does not
// count in its place.
func TestBrokenAnswer(t *testing.T) {
	g := shows(judge.Reached)
	g.exits, g.answers, g.saves = works().exits, time.Second, ckpt(5, 5)
	w := newWorld(t, g)
	w.supervisor.Placer = placerFunc(func() { w.checkpoints.put(g.saves, nil) }, w.placer) // the checkpoint exists when the ranks are asked
	w.spec.CheckpointDir, w.spec.EarlyStop, w.spec.BeforeStop = "/ckpt", "stop", job.BeforeStopUSR1
	w.checkpoints.notes = []string{"step-7 is truncated"}
	w.run(t)
	if r := w.report; *r.ExitCode != 1 || r.Attempts[0].Saved == nil {
		t.Errorf("got %d (%s), saved %v\n%s", *r.ExitCode, r.ExitWhy, r.Attempts[0].Saved, w.notes())
	}
	w = newWorld(t, g)
	w.supervisor.Placer = placerFunc(func() { w.checkpoints.put(g.saves, nil) }, w.placer)
	w.spec.CheckpointDir, w.spec.EarlyStop, w.spec.BeforeStop = "/ckpt", "stop", job.BeforeStopUSR1
	if w.run(t); *w.report.ExitCode != 0 { // nothing was written, but the one from before the request will do
		t.Errorf("got %d (%s)", *w.report.ExitCode, w.report.ExitWhy)
	}
}

// TestTakeoverDuringTheWait: if a controller dies while it waits for a checkpoint, the journal has the reason
// why it ends the run. The controller that takes over ends the run for the same reason, and starts nothing. It
// does not matter whether the ranks still exist.
func TestTakeoverDuringTheWait(t *testing.T) {
	saves := func(g gang) gang {
		g.saves, g.answers, g.exits = ckpt(7, 30), 4*time.Second, works().exits
		return g
	}
	long := saves(gang{launch: time.Second, life: time.Hour, steps: -1})
	for _, c := range []struct {
		name  string
		gang  gang
		kind  job.Kind // the kind of the event after which the first controller dies
		state job.State
		code  int
	}{
		{"the user's order", long, job.KindNote, job.StateCancelled, 130},
		{"a target that was reached", saves(shows(judge.Reached)), job.KindNote, job.StateStoppedEarly, 0},
		{"a plateau", saves(shows(judge.Plateau)), job.KindCurve, job.StateStoppedEarly, 0},
		{"a divergence", saves(shows(judge.Diverged)), job.KindCurve, job.StateStoppedEarly, 1},
	} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", c.name, gone), func(t *testing.T) {
				world := func() *world {
					w := newWorld(t, c.gang)
					w.spec.CheckpointDir, w.spec.BeforeStop, w.spec.EarlyStop = "/ckpt", job.BeforeStopUSR1, "stop"
					return w
				}
				whole := world()
				if c.state == job.StateCancelled {
					whole.cancelAfter = time.Minute
				}
				whole.run(t)
				w := world()
				w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
				w.launcher.asked.set(func() { time.AfterFunc(time.Second, func() { w.checkpoints.put(c.gang.saves, nil) }) })
				if gone {
					w.checkpoints.put(c.gang.saves, nil)
					w.supervisor.Launcher = launcherFunc(func(_ context.Context, a job.Attempt, emit func(job.Event)) (o job.Outcome, err error) {
						if !a.Adopt {
							t.Errorf("attempt %d is started", a.Number)
						}
						for _, r := range a.Placement.Ranks {
							x := job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Lost, Text: "its agent has ended"}
							o.Exits, o.AgentsEnded = append(o.Exits, x), append(o.AgentsEnded, r.Host)
							emit(job.Event{Kind: job.KindExit, Exit: &x})
						}
						return o, nil
					})
				}
				w.resume(t, cut(whole.events, c.kind, 1), 3*time.Second)
				if r := w.report; r.State != c.state || *r.ExitCode != c.code || len(r.Attempts) != 1 {
					t.Errorf("got %s and %d (%s) after %d attempts, want %s and %d\n%s\n%s", r.State, *r.ExitCode, r.Reason, len(r.Attempts), c.state, c.code, w.story(), w.notes())
				}
			})
		}
	}
}

// TestTakeoverAfterTheTimeLimit: the controller of a run died while it was stopping the run early. The run ends
// for that reason even if its time limit has passed since. gangrun does not wait for a checkpoint any longer.
func TestTakeoverAfterTheTimeLimit(t *testing.T) {
	world := func() *world {
		g := shows(judge.Reached) // at 6 s
		g.saves, g.answers, g.exits = ckpt(7, 30), 20*time.Second, works().exits
		w := newWorld(t, g)
		w.spec.CheckpointDir, w.spec.BeforeStop, w.spec.EarlyStop, w.spec.Timeout = "/ckpt", job.BeforeStopUSR1, "stop", job.Duration(8*time.Second)
		return w
	}
	whole := world()
	whole.run(t)
	for _, kind := range []job.Kind{job.KindCurve, job.KindOutcome, job.KindVerdict} {
		w := world()
		w.checkpoints.put(ckpt(7, 30), nil)
		w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
		past := cut(whole.events, kind, 1)
		w.resume(t, past, 10*time.Second)
		if r := w.report; r.State != job.StateStoppedEarly || len(r.Attempts) != 1 {
			t.Errorf("after %s: %s and %d (%s)\n%s", kind, r.State, *r.ExitCode, r.Reason, w.story())
		}
		if took := w.events[len(w.events)-1].Time.Sub(w.events[0].Time); took > 10*time.Second {
			t.Errorf("after %s: it took %s", kind, took)
		}
	}
}

// TestAnswersOfBefore: a rank that answered before the takeover has not failed.
func TestAnswersOfBefore(t *testing.T) {
	l := &loop{Supervisor: &Supervisor{}, spec: job.Default()}
	l.spec.BeforeStop = job.BeforeStopUSR1
	one, other := exited(0, 143), exited(1, 3)
	past := []job.Event{
		{Kind: job.KindPlaced, Attempt: 1, Placement: new(job.Placement)}, {Kind: job.KindAttempt, Attempt: 1}, {Kind: job.KindAllStarted, Attempt: 1},
		{Kind: job.KindNote, Attempt: 1, Stop: job.StopOrder}, {Kind: job.KindExit, Attempt: 1, Exit: &one},
	}
	if got := l.restore(past); !got.cancelled || l.adopted.failed {
		t.Errorf("restored %+v, failed %t", got, l.adopted.failed)
	}
	if o := l.adopted.complete(job.Outcome{Exits: []job.Exit{exited(0, 143)}}); !o.Exits[0].Stopped {
		t.Errorf("it ended by %+v", o.Exits)
	}
	past[4].Exit = &other
	if l.restore(past); !l.adopted.failed {
		t.Error("a rank that has failed is not known")
	}
}

// TestWaitIsCutShort: gangrun does not wait for the ranks for longer than it can help. A user who ends the run
// meanwhile learns how to end it at once.
func TestWaitIsCutShort(t *testing.T) {
	slow := shows(judge.Reached) // at 6 s
	slow.answers, slow.saves, slow.exits = 20200*time.Millisecond, ckpt(7, 30), works().exits
	fast := slow
	fast.answers = 1200 * time.Millisecond // at 7.2 s, and nothing of it must change for 5 s
	deaf := func(hosts int) gang { g := slow; g.deaf = hosts; return g }
	cancel := func(w *world) { w.cancelAfter, w.signal = 8*time.Second, syscall.SIGINT }
	for _, c := range []struct {
		name  string
		gang  gang
		set   func(*world)
		took  time.Duration
		state job.State
		code  int
		note  string
	}{
		{"the whole wait", slow, func(*world) {}, 36500 * time.Millisecond, job.StateStoppedEarly, 0, "there is a new good checkpoint"},
		{"the time limit, and there is no checkpoint", slow, func(w *world) { w.spec.Timeout = job.Duration(9 * time.Second) }, 14 * time.Second, job.StateStoppedEarly, 1, "the gang is ended without waiting for a checkpoint: the time limit of 9s was reached"},
		{"the time limit, and there is one", fast, func(w *world) { w.spec.Timeout = job.Duration(9 * time.Second) }, 14 * time.Second, job.StateStoppedEarly, 0, "the gang is ended without waiting for a checkpoint: the time limit of 9s was reached"},
		{"the time limit while the gang is ended", deaf(2), func(w *world) { w.spec.Timeout = job.Duration(8 * time.Second) }, 11 * time.Second, job.StateStoppedEarly, 1, "no rank handles the signal"},
		{"the batch system", slow, func(w *world) {
			cancel(w)
			w.signal, w.supervisor.Batch = syscall.SIGTERM, func() job.Ended { return job.EndedPreempted }
		}, 36500 * time.Millisecond, job.StateStoppedEarly, 0, "there is a new good checkpoint"},
		{"a signal", slow, cancel, 36500 * time.Millisecond, job.StateCancelled, 130, "the gang is being ended already: the ranks have up to 30s, in all, for a checkpoint; a second signal, or gangrun stop --now, ends them at once"},
		{"nobody handles the signal", deaf(2), func(*world) {}, 11 * time.Second, job.StateStoppedEarly, 1, "no rank handles the signal"},
		{"one handles it", deaf(1), func(*world) {}, 36500 * time.Millisecond, job.StateStoppedEarly, 0, "there is a new good checkpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.gang)
			w.spec.CheckpointDir, w.spec.BeforeStop, w.spec.EarlyStop = "/ckpt", job.BeforeStopUSR1, "stop"
			c.set(w)
			w.run(t)
			if r := w.report; r.State != c.state || *r.ExitCode != c.code || w.took != c.took || !strings.Contains(w.notes(), c.note) {
				t.Errorf("got %s and %d (%s) after %s, want %s and %d after %s\n%s\n%s", r.State, *r.ExitCode, r.ExitWhy, w.took, c.state, c.code, c.took, w.story(), w.notes())
			}
		})
	}
}

// TestToldOfTheSecondSignal: gangrun tells a user who ends a run while its gang is already being ended how to
// end the ranks at once. The earlier decision remains the reason, but gangrun does not start the gang again.
func TestToldOfTheSecondSignal(t *testing.T) {
	long := gang{launch: time.Second, life: time.Hour, steps: -1, answers: 20 * time.Second, saves: ckpt(7, 30)}
	failing := dies(exited(0, 7), job.NetworkError, -1) // at 16 s
	failing.dying = 5 * time.Second
	const wait, grace = "the gang is being ended already: the ranks have up to 30s, in all, for a checkpoint; " + atOnce, "the gang is being ended already: " + atOnce
	for _, c := range []struct {
		name  string
		gang  gang
		set   func(*world)
		after time.Duration
		told  string // "" if nothing but the request for a checkpoint
		order bool   // the journal has it as the reason
		code  int
	}{
		{"the time limit, while a checkpoint is waited for", long, func(w *world) { w.spec.Timeout = job.Duration(time.Minute) }, 61 * time.Second, wait, false, 124},
		{"the time limit, in the grace period", long, func(w *world) { w.spec.Timeout, w.spec.BeforeStop = job.Duration(time.Minute), job.BeforeStopNone }, 61 * time.Second, grace, false, 124},
		{"an early stop, in the grace period", shows(judge.Diverged), func(*world) {}, 7 * time.Second, grace, true, 130},
		{"a failure", failing, func(*world) {}, 18 * time.Second, grace, true, 130},
		{"nothing else", long, func(*world) {}, time.Minute, "", true, 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.gang)
			w.spec.CheckpointDir, w.spec.BeforeStop, w.cancelAfter, w.signal = "/ckpt", job.BeforeStopUSR1, c.after, syscall.SIGINT
			c.set(w)
			w.run(t)
			if *w.report.ExitCode != c.code {
				t.Errorf("got %d (%s), want %d\n%s", *w.report.ExitCode, w.report.ExitWhy, c.code, w.story())
			}
			var told []string
			order := false
			for _, e := range w.events {
				if e.Kind == job.KindNote && strings.Contains(e.Text, "being ended already") {
					told = append(told, e.Text)
				}
				order = order || e.Order != nil && *e.Order == job.Order{Ended: job.EndedCancelled, Signal: int(syscall.SIGINT)}
			}
			if strings.Join(told, "\n") != c.told || order != c.order {
				t.Errorf("told %q, want %q; in the journal: %t, want %t", told, c.told, order, c.order)
			}
			if c.told == "" && !strings.Contains(w.notes(), "(sigusr1), and waiting for it for up to 30s; "+atOnce) {
				t.Errorf("the notes are %q", w.notes())
			}
		})
	}
}

// TestWaitIsNoStandstill: ranks that make no steps while gangrun waits for their checkpoint do not look like a
// gang that hangs.
func TestWaitIsNoStandstill(t *testing.T) {
	idle := job.Duration(4 * time.Second)
	l := &loop{Supervisor: &Supervisor{Emit: func(job.Event) error { return nil }}}
	l.emit(job.Event{Kind: job.KindPlaced, Attempt: 1, Placement: new(job.Placement)})
	l.emit(job.Event{Kind: job.KindActivity, Attempt: 1, Activity: []job.Activity{
		{Rank: 0, Quiet: idle, Age: 10 * idle, Idle: &idle}, {Rank: 1, Quiet: idle / 4, Age: 10 * idle},
	}})
	if got := l.activity(); len(got) != 2 || got[0].Quiet != idle || *got[0].Idle != idle {
		t.Errorf("without a request: %+v", got)
	}
	l.resume.request = &request{waited: 3 * time.Second}
	if got := l.activity(); got[0].Quiet != idle/4 || *got[0].Idle != idle/4 || got[0].Age != 10*idle-3*idle/4 || got[1].Quiet != 0 || got[1].Idle != nil {
		t.Errorf("after a request: %+v", got)
	}
	if got := l.folder.Report().Last().Activity; *got[0].Idle != idle {
		t.Errorf("the report has %+v", got)
	}
}
