package supervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestResumeWithoutAgents: agents that have ended before the takeover make the attempt fail, but exclude no
// host. Ranks whose exits are in the journal are not lost.
func TestResumeWithoutAgents(t *testing.T) {
	gone := func(ctx context.Context, a job.Attempt, emit func(job.Event)) (o job.Outcome, err error) {
		for _, r := range a.Placement.Ranks {
			x := job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Lost, Text: "its agent has ended"}
			o.Exits = append(o.Exits, x)
			o.AgentsEnded = append(o.AgentsEnded, r.Host)
			emit(job.Event{Kind: job.KindExit, Exit: &x})
		}
		return o, nil
	}
	set := func(t *testing.T, gangs ...gang) *world {
		w := newWorld(t, gangs...)
		next := w.launcher
		w.supervisor.Launcher = launcherFunc(func(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
			if a.Adopt {
				return gone(ctx, a, emit)
			}
			return next.Run(ctx, a, emit)
		})
		w.supervisor.Elsewhere = true
		return w
	}
	whole := newWorld(t, works())
	whole.run(t)

	t.Run("running", func(t *testing.T) {
		w := set(t, gang{}, works())
		w.resume(t, cut(whole.events, job.KindAllStarted, 1), time.Minute)
		c := w.report.Attempts[0].Cause
		if w.report.State != job.StateSucceeded || len(w.report.Attempts) != 2 || c.Category != job.HostLost || c.Signature != "controller-gone" || !strings.Contains(c.Text, "h1, h2") {
			t.Errorf("%s after %d attempts, the first died of %+v", w.report.State, len(w.report.Attempts), c)
		}
		if nots := w.placer.nots; len(nots) != 1 || !nots[0].Empty() {
			t.Errorf("placed without %+v", nots)
		}
	})
	t.Run("ended", func(t *testing.T) {
		w := set(t)
		w.resume(t, cut(whole.events, job.KindExit, 2), time.Minute)
		if w.report.State != job.StateSucceeded || len(w.report.Attempts) != 1 {
			t.Errorf("%s after %d attempts: %s", w.report.State, len(w.report.Attempts), w.report.Reason)
		}
	})
	t.Run("failed", func(t *testing.T) {
		died := newWorld(t, dies(exited(1, 9), job.ImportError, -1))
		died.run(t)
		w := set(t)
		w.resume(t, cut(died.events, job.KindStop, 1), time.Minute)
		if c := w.report.Attempts[0].Cause; c.Category != job.ImportError || *w.report.ExitCode != 9 {
			t.Errorf("exit code %d, died of %+v", *w.report.ExitCode, c)
		}
		if x := w.report.Attempts[0].Exits; len(x) != 2 || x[0].Rank != 1 || !x[1].Stopped {
			t.Errorf("exits %+v", x)
		}
	})
}

// TestResumeToEnd: a controller that continues a run only to end it starts nothing. If it did not end the gang
// itself, it says that the gang was gone.
func TestResumeToEnd(t *testing.T) {
	whole := newWorld(t, works())
	whole.run(t)
	const by = "gangrun stop (root on h3)"
	for name, test := range map[string]struct {
		kind    job.Kind
		gone    bool
		reason  string
		attempt bool
	}{
		"preflight": {kind: job.KindCreated, reason: "cancelled by " + by + " during the preflight"},
		"placed":    {kind: job.KindPlaced, reason: "cancelled by " + by + " before the gang was placed"},
		"there":     {kind: job.KindAllStarted, reason: "cancelled by " + by + " while the gang was up", attempt: true},
		"gone":      {kind: job.KindAllStarted, gone: true, reason: "cancelled by " + by + " after its controller had died; nothing of its gang was left", attempt: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, works())
			w.order = order.Interrupted{Signal: syscall.SIGTERM, By: by}
			w.supervisor.Launcher = launcherFunc(func(ctx context.Context, a job.Attempt, emit func(job.Event)) (o job.Outcome, err error) {
				if !a.Adopt {
					t.Errorf("attempt %d is started", a.Number)
				}
				for _, r := range a.Placement.Ranks {
					x := job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Signalled, Signal: 15, Stopped: true}
					if test.gone {
						x = job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Lost}
						o.AgentsEnded = append(o.AgentsEnded, r.Host)
					}
					o.Exits = append(o.Exits, x)
					emit(job.Event{Kind: job.KindExit, Exit: &x})
				}
				return o, nil
			})
			w.resume(t, cut(whole.events, test.kind, 1), time.Minute)
			if w.report.State != job.StateCancelled || *w.report.ExitCode != 143 || w.report.Reason != test.reason {
				t.Errorf("%s with %d: %s; want %s", w.report.State, *w.report.ExitCode, w.report.Reason, test.reason)
			}
			if !test.attempt {
				return
			}
			c := w.report.Attempts[0].Cause
			if told := strings.Contains(strings.Join(runreport.Summary(w.report), "\n"), "2 ranks lost"); told != test.gone {
				t.Errorf("it is told that the ranks were lost: %v, want %v", told, test.gone)
			}
			if c.Category != job.Cancelled || strings.Contains(c.Text, "the controller died, and when another took over the ranks on h1, h2 had ended") != test.gone {
				t.Errorf("the attempt died of %+v", c)
			}
		})
	}
}

// TestResumeUnknownSecret: if a secret is not known, the events have no line of a rank.
func TestResumeUnknownSecret(t *testing.T) {
	whole := newWorld(t, works())
	whole.spec.Env, whole.spec.Secret = map[string]string{"TOKEN": "hush-hush"}, []string{"TOKEN"}
	whole.run(t)
	for value, want := range map[string]int{"hush-hush": 1, job.Hidden: 0} {
		w := newWorld(t)
		w.spec.Env, w.spec.Secret = map[string]string{"TOKEN": value}, []string{"TOKEN"}
		w.order = order.Interrupted{Signal: syscall.SIGTERM}
		w.supervisor.Launcher = launcherFunc(func(_ context.Context, _ job.Attempt, _ func(job.Event)) (job.Outcome, error) {
			return job.Outcome{Exits: []job.Exit{exited(0, 3), exited(1, 3)}, Lines: []job.Line{{Text: "token is hush-hush"}}}, nil
		})
		w.resume(t, cut(whole.events, job.KindAllStarted, 1), time.Minute)
		if len(w.evidence) != 1 || len(w.evidence[0].Lines) != want {
			t.Errorf("with %q the cause was found by %+v, want %d lines", value, w.evidence, want)
		}
	}
}

// TestResumeLeaseLost: an adopted gang that loses its lease is ended, and started again with another lease.
func TestResumeLeaseLost(t *testing.T) {
	whole := newWorld(t, works())
	whole.run(t)
	long := works()
	long.life, long.endErr = time.Hour, LeaseLost{errors.New("x")}
	w := newWorld(t, long, works())
	w.placer.lose = 5 * time.Second
	w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
	w.resume(t, cut(whole.events, job.KindAllStarted, 1), time.Second)
	c := w.report.Attempts[0].Cause
	if w.report.State != job.StateSucceeded || len(w.report.Attempts) != 2 || c == nil || c.Signature != "lease-lost" || !strings.Contains(c.Text, "the lock file is gone") {
		t.Errorf("%s after %d attempts, the first died of %+v", w.report.State, len(w.report.Attempts), c)
	}
	once(t, slices.Concat(cut(whole.events, job.KindAllStarted, 1), w.events))
}

// TestResumeCancelled: a run that its user has cancelled is not started again. It has the exit code of the
// signal that ended it.
func TestResumeCancelled(t *testing.T) {
	failing := dies(exited(0, 7), job.NetworkError, -1) // at 16 s
	failing.dying = 5 * time.Second
	for name, c := range map[string]struct {
		gang  gang
		after time.Duration
		kinds []job.Kind
	}{
		"a gang that works": {works(), 10 * time.Second, []job.Kind{job.KindStop, job.KindExit, job.KindOutcome, job.KindCause, job.KindVerdict}},
		"a gang that fails": {failing, 18 * time.Second, []job.Kind{job.KindNote, job.KindOutcome, job.KindCause, job.KindVerdict}},
	} {
		for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGHUP: 129, syscall.SIGTERM: 143} {
			whole := newWorld(t, c.gang)
			whole.cancelAfter, whole.signal = c.after, signal
			whole.run(t)
			for _, kind := range c.kinds {
				w := newWorld(t, c.gang)
				w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
				w.resume(t, cut(whole.events, kind, 1), time.Second)
				if w.report.State != job.StateCancelled || *w.report.ExitCode != code || len(w.report.Attempts) != 1 {
					t.Errorf("%s, after %s: %s with %d after %d attempts, want %d", name, kind, w.report.State, *w.report.ExitCode, len(w.report.Attempts), code)
				}
				if kind != job.KindNote { // the fake gang does not fail once more in the same way
					once(t, slices.Concat(cut(whole.events, kind, 1), w.events))
				}
			}
		}
	}
}

// TestResumeOrder: an order that a controller had begun to carry out also counts for the next controller,
// whatever order has come since.
func TestResumeOrder(t *testing.T) {
	user := order.Interrupted{Signal: syscall.SIGTERM, By: "gangrun stop (ann on h0)"}
	now := order.Interrupted{Signal: syscall.SIGTERM, By: "gangrun stop --now (ann on h1)", Now: true}
	for name, c := range map[string]struct {
		first error // why the first controller ends the run
		then  error // why the second one would
		limit time.Duration
		state job.State
		code  int
		why   string
	}{
		"gangrun stop, then a signal":   {user, order.Interrupted{Signal: syscall.SIGINT}, 0, job.StateCancelled, 143, "cancelled by gangrun stop (ann on h0)"},
		"gangrun stop, then stop --now": {user, now, 0, job.StateCancelled, 143, "cancelled by gangrun stop --now (ann on h1)"},
		"a signal, then gangrun stop":   {order.Interrupted{Signal: syscall.SIGINT}, user, 0, job.StateCancelled, 130, "cancelled by SIGINT"},
		"a signal, then the time limit": {order.Interrupted{Signal: syscall.SIGINT}, nil, 11 * time.Second, job.StateCancelled, 130, "cancelled by SIGINT"},
		"the time limit, then a signal": {order.TimeLimit{Limit: job.Duration(10 * time.Second)}, user, 10 * time.Second, job.StateFailed, 124, "the time limit of 10s was reached"},
		"the batch system":              {order.BatchEnd{Ended: job.EndedPreempted}, user, 0, job.StateFailed, 75, "the batch system takes the hosts"},
		"scancel":                       {order.BatchEnd{Ended: job.EndedCancelled}, nil, 0, job.StateCancelled, 143, "the batch job was cancelled"},
	} {
		whole := newWorld(t, works())
		whole.run(t)
		past := cut(whole.events, job.KindAllStarted, 1)
		at := past[len(past)-1].Time.Add(time.Second)
		past = append(slices.Clone(past), job.Event{Kind: job.KindStop, Attempt: 1, Time: at, Stop: job.StopOrder, Text: toldToEnd, Order: order.Of(c.first)})
		w := newWorld(t, works())
		w.supervisor.Launcher, w.order, w.spec.Timeout = &adopter{fakeLauncher: w.launcher}, c.then, job.Duration(c.limit)
		w.resume(t, past, 10*time.Second)
		if r := w.report; r.State != c.state || *r.ExitCode != c.code || !strings.HasPrefix(r.Reason, c.why) || len(r.Attempts) != 1 {
			t.Errorf("%s: %s with %d (%s) after %d attempts, want %s with %d (%s)", name, r.State, *r.ExitCode, r.Reason, len(r.Attempts), c.state, c.code, c.why)
		}
	}
}

// TestResumeStopped: a gang that is taken over while it is being ended is started again if it lost its lease,
// but not if the run was cancelled.
func TestResumeStopped(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*world)
		stop  job.StopReason
		state job.State
	}{
		"lease lost": {func(w *world) { w.placer.lose = 5 * time.Second }, job.StopFailure, job.StateSucceeded},
		"cancelled":  {func(w *world) { w.cancelAfter = time.Minute }, job.StopOrder, job.StateCancelled},
	} {
		whole := newWorld(t, gang{life: time.Hour}, works())
		c.set(whole)
		whole.run(t)
		past := cut(whole.events, job.KindStop, 1)
		if i := slices.IndexFunc(past, func(e job.Event) bool { return e.Kind == job.KindStop }); past[i].Stop != c.stop {
			t.Errorf("%s: the gang is ended because of %q, want %q", name, past[i].Stop, c.stop)
		}
		w := newWorld(t, works(), works())
		w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
		w.resume(t, past, time.Second)
		if w.report.State != c.state {
			t.Errorf("%s: the run is %s, want %s: %s", name, w.report.State, c.state, w.report.Reason)
		}
	}
}

// TestResumeEnding: the controller died while it was ending the gang, without a failed rank. The reason counts, if it is
// known, and in each case there is another attempt.
func TestResumeEnding(t *testing.T) {
	for want, hang := range map[job.Category]*job.HangReport{job.Hang: {Text: "no step for 10m"}, job.HostLost: nil} {
		whole := newWorld(t, gang{life: time.Hour}, works())
		whole.placer.lose = 5 * time.Second
		whole.run(t)
		past := cut(whole.events, job.KindStop, 1)
		stop := past[len(past)-1]
		if hang != nil {
			past = append(past[:len(past)-1:len(past)-1], job.Event{Kind: job.KindHang, Time: stop.Time, Attempt: 1, Hang: hang, Text: hang.Text}, stop)
		}
		for _, ended := range []bool{false, true} { // whether the gang had ended, too
			all := slices.Clone(past)
			o := job.Outcome{Exits: []job.Exit{stopped(signalled(0, 15)), stopped(signalled(1, 15))}}
			if ended {
				all = append(all, job.Event{Kind: job.KindOutcome, Time: stop.Time, Attempt: 1, Outcome: &o})
			}
			w := newWorld(t, gang{exits: o.Exits}, works())
			w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
			w.resume(t, all, time.Second)
			first := w.report.Attempts[0]
			if w.report.State != job.StateSucceeded || len(w.report.Attempts) != 2 || first.Cause.Category != want {
				t.Errorf("hang %v, ended %t: the run is %s after %d attempts, the first because of %+v", hang, ended, w.report.State, len(w.report.Attempts), first.Cause)
			}
		}
	}
}

// TestResumeTimeLimit: the time without a controller counts.
func TestResumeTimeLimit(t *testing.T) {
	whole := newWorld(t, works())
	whole.run(t)
	w := newWorld(t, works())
	w.spec.Timeout = job.Duration(30 * time.Second)
	w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
	w.resume(t, cut(whole.events, job.KindAllStarted, 1), time.Minute)
	if w.report.State != job.StateFailed || *w.report.ExitCode != exitcode.TimeLimit {
		t.Errorf("%s with %d", w.report.State, *w.report.ExitCode)
	}
}

// TestResumeForeignCheckpoint: a checkpoint that was there before the run still does not belong to the run.
func TestResumeForeignCheckpoint(t *testing.T) {
	make := func(gangs ...gang) *world {
		w := newWorld(t, gangs...)
		w.spec.CheckpointDir = "/ckpt"
		w.checkpoints.newest = &job.Checkpoint{Path: "/ckpt/step-90", Step: 90, Time: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)}
		return w
	}
	killed := dies(signalled(1, 9), job.Killed, 5)
	whole := make(killed, works())
	whole.run(t)
	for _, kind := range []job.Kind{job.KindAllStarted, job.KindVerdict, job.KindPlaced} {
		w := make(killed, works())
		w.supervisor.Launcher = &adopter{fakeLauncher: w.launcher}
		w.resume(t, cut(whole.events, kind, 1), time.Second)
		if a := w.report.Last(); w.report.State != job.StateSucceeded || a.ResumeFrom != "" {
			t.Errorf("after %s: %s, the last attempt resumes from %q", kind, w.report.State, a.ResumeFrom)
		}
	}
}

// TestResumeLauncherFails: a failure of gangrun itself is reported as such.
func TestResumeLauncherFails(t *testing.T) {
	whole := newWorld(t, works())
	whole.run(t)
	w := newWorld(t)
	w.supervisor.Launcher = launcherFunc(func(context.Context, job.Attempt, func(job.Event)) (job.Outcome, error) {
		return job.Outcome{}, errors.New("no log")
	})
	w.resume(t, cut(whole.events, job.KindAllStarted, 1), 0)
	if w.err == nil || *w.report.ExitCode != exitcode.Internal {
		t.Errorf("error %v, exit code %d", w.err, *w.report.ExitCode)
	}
}
