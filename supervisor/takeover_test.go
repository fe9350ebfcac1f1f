package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// resume has another supervisor go on with what w has told up to an event, after a
// while.
func (w *world) resume(t *testing.T, past []job.Event, after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if last := past[len(past)-1].Time.Add(after); last.After(time.Now()) {
			time.Sleep(time.Until(last))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if w.order != nil {
			cancel(w.order)
		}
		w.report, w.err = w.supervisor.Resume(ctx, Run{ID: "r1", Controller: job.Controller{Host: "there", PID: 8}, LogDir: w.logDir}, w.spec, past)
		synctest.Wait()
	})
	if w.placer.held != 0 {
		t.Errorf("%d leases are still held", w.placer.held)
	}
}

// adopter is a fakeLauncher whose gangs outlive a controller, and tell everything
// anew.
type adopter struct {
	*fakeLauncher
	adopted []int
}

func (a *adopter) Run(ctx context.Context, o job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if !o.Adopt {
		return a.fakeLauncher.Run(ctx, o, emit)
	}
	a.adopted = append(a.adopted, o.Number)
	return a.fakeLauncher.Run(ctx, o, emit)
}

// TestResumeAnywhere cuts runs off at each of their events: who goes on from there
// comes to the same end, and nothing is told twice.
func TestResumeAnywhere(t *testing.T) {
	killed := dies(signalled(1, 9), job.Killed, 5)
	worlds := map[string]func(t *testing.T) *world{
		"success": func(t *testing.T) *world { return newWorld(t, works(), works()) },
		"retry":   func(t *testing.T) *world { return newWorld(t, killed, works(), works()) },
		"checkpoints": func(t *testing.T) *world {
			w := newWorld(t, killed.saving(5), killed.saving(7), works(), works())
			w.spec.CheckpointDir = "/ckpt"
			return w
		},
		"loading": func(t *testing.T) *world {
			saves, stuck := killed.saving(40), dies(exited(0, 1), job.StorageError, -1)
			saves.older = []*job.Checkpoint{kept(20), kept(10)}
			w := newWorld(t, saves, stuck, stuck, dies(exited(0, 1), job.CheckpointError, -1), works(), works())
			w.spec.CheckpointDir, w.spec.Retries = "/ckpt", 9
			return w
		},
		"never": func(t *testing.T) *world {
			return newWorld(t, dies(exited(0, 4), job.ImportError, -1), dies(exited(0, 4), job.ImportError, -1))
		},
		"budget": func(t *testing.T) *world {
			w := newWorld(t, killed, killed)
			w.spec.Retries = 0
			return w
		},
		"secret": func(t *testing.T) *world {
			x := exited(0, 3)
			g := dies(x, job.Traceback, -1)
			g.exits[0].Text = "token is hush-hush"
			w := newWorld(t, g, g)
			w.spec.Env, w.spec.Secret, w.spec.Retries = map[string]string{"TOKEN": "hush-hush"}, []string{"TOKEN"}, 0
			return w
		},
	}
	for name, world := range worlds {
		whole := world(t)
		whole.run(t)
		for cut := 1; cut < len(whole.events); cut++ {
			past := whole.events[:cut]
			last := past[cut-1]
			t.Run(fmt.Sprintf("%s/%d-%s-%s", name, cut, last.Kind, last.State), func(t *testing.T) {
				w := world(t)
				launcher := &adopter{fakeLauncher: w.launcher}
				w.supervisor.Launcher = launcher
				for _, e := range past {
					if g := w.launcher.gangs[max(e.Attempt, 1)-1]; e.Kind == job.KindOutcome && g.saves != nil {
						w.checkpoints.newest, w.checkpoints.older = g.saves, g.older
					}
				}
				w.resume(t, past, 3*time.Second)
				all := slices.Concat(past, w.events)
				if first := w.events[0]; first.Kind != job.KindAttached || first.Controller.PID != 8 || w.report.Controller.PID != 8 {
					t.Errorf("the first event is %s of %+v", first.Kind, first.Controller)
				}
				begun, started := lastAttempt(past)
				extra := 0
				want := fmt.Sprint(whole.report.State, *whole.report.ExitCode)
				if begun > 0 && !started {
					extra = 1 // it is lost, and another is made
					if w.spec.Retries == 0 {
						want = fmt.Sprint(job.StateFailed, exitcode.MayPass)
					}
				}
				if got := fmt.Sprint(w.report.State, *w.report.ExitCode); got != want {
					t.Errorf("it ends %s, want %s: %s", got, want, w.report.Reason)
				}
				adopts := 0
				if begun > 0 {
					adopts = 1
				}
				if len(launcher.adopted) != adopts || adopts == 1 && launcher.adopted[0] != begun {
					t.Errorf("attempts %v were adopted, want %d of number %d", launcher.adopted, adopts, begun)
				}
				if extra == 0 {
					if got, want := len(w.report.Attempts), len(whole.report.Attempts); got != want {
						t.Errorf("%d attempts, want %d", got, want)
					}
				} else if c := w.report.Attempts[begun-1].Cause; c == nil || c.Signature != "controller-gone" {
					t.Errorf("the attempt that had not started died of %+v", c)
				}
				once(t, all)
				for i, a := range w.report.Attempts {
					if extra == 0 && i < len(whole.report.Attempts) && a.ResumeFrom != whole.report.Attempts[i].ResumeFrom {
						t.Errorf("attempt %d resumes from %q, want %q", a.Number, a.ResumeFrom, whole.report.Attempts[i].ResumeFrom)
					}
				}
			})
		}
	}
}

// lastAttempt returns the number of the attempt that is on its way, 0 for none, and
// whether all of it has started.
func lastAttempt(past []job.Event) (number int, started bool) {
	for _, e := range past {
		switch e.Kind {
		case job.KindAttempt:
			number, started = e.Attempt, false
		case job.KindAllStarted:
			started = true
		case job.KindOutcome:
			number = 0
		}
	}
	return number, started
}

// once checks that no event of an attempt is journalled twice.
func once(t *testing.T, events []job.Event) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range events {
		if e.Attempt == 0 {
			continue
		}
		key := ""
		switch e.Kind {
		case job.KindStarted:
			key = fmt.Sprintf("%s %d of %d", e.Kind, e.Rank, e.Attempt)
		case job.KindExit:
			key = fmt.Sprintf("%s %d of %d", e.Kind, e.Exit.Rank, e.Attempt)
		case job.KindAllStarted, job.KindAttempt, job.KindOutcome, job.KindCause, job.KindVerdict, job.KindStop:
			key = fmt.Sprintf("%s of %d", e.Kind, e.Attempt)
		default:
			continue
		}
		if seen[key] {
			t.Errorf("%s is told twice", key)
		}
		seen[key] = true
	}
}

// launcherFunc is a Launcher.
type launcherFunc func(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)

func (f launcherFunc) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	return f(ctx, a, emit)
}

// cut returns the events up to the n-th of a kind.
func cut(events []job.Event, kind job.Kind, n int) []job.Event {
	for i, e := range events {
		if e.Kind == kind {
			if n--; n == 0 {
				return events[:i+1]
			}
		}
	}
	panic("there is no such event")
}

// Agents that have ended before the takeover make the attempt fail, and exclude no host.
// Ranks whose end was recorded before are not lost.
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

// TestResumeToEnd: who goes on with a run only to end it starts nothing, and says of
// what it did not end that it was gone.
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
			w.order = Interrupted{Signal: syscall.SIGTERM, By: by}
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

// TestResumeUnknownSecret: where a secret is not known, no line of a rank is told.
func TestResumeUnknownSecret(t *testing.T) {
	whole := newWorld(t, works())
	whole.spec.Env, whole.spec.Secret = map[string]string{"TOKEN": "hush-hush"}, []string{"TOKEN"}
	whole.run(t)
	for value, want := range map[string]int{"hush-hush": 1, job.Hidden: 0} {
		w := newWorld(t)
		w.spec.Env, w.spec.Secret = map[string]string{"TOKEN": value}, []string{"TOKEN"}
		w.order = Interrupted{Signal: syscall.SIGTERM}
		w.supervisor.Launcher = launcherFunc(func(_ context.Context, _ job.Attempt, _ func(job.Event)) (job.Outcome, error) {
			return job.Outcome{Exits: []job.Exit{exited(0, 3), exited(1, 3)}, Lines: []job.Line{{Text: "token is hush-hush"}}}, nil
		})
		w.resume(t, cut(whole.events, job.KindAllStarted, 1), time.Minute)
		if len(w.evidence) != 1 || len(w.evidence[0].Lines) != want {
			t.Errorf("with %q the cause was found by %+v, want %d lines", value, w.evidence, want)
		}
	}
}

// TestResumeLeaseLost: an adopted gang that loses its lease is ended, and started
// again with another.
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

// TestResumeCancelled: what its user had ended is not started again.
func TestResumeCancelled(t *testing.T) {
	whole := newWorld(t, works())
	whole.cancelAfter = 10 * time.Second
	whole.run(t)
	for _, kind := range []job.Kind{job.KindStop, job.KindExit} {
		w := newWorld(t, works())
		launcher := &adopter{fakeLauncher: w.launcher}
		w.supervisor.Launcher = launcher
		w.resume(t, cut(whole.events, kind, 1), time.Second)
		if w.report.State != job.StateCancelled || *w.report.ExitCode != 143 || len(w.report.Attempts) != 1 {
			t.Errorf("after %s: %s with %d after %d attempts", kind, w.report.State, *w.report.ExitCode, len(w.report.Attempts))
		}
		once(t, slices.Concat(cut(whole.events, kind, 1), w.events))
	}
}

// TestResumeStopped: a gang that is taken over while it is being ended is started again
// after its lease was lost, and not after the run was cancelled.
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

// TestResumeTimeLimit: the time in which there was no controller counts.
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

// TestResumeForeignCheckpoint: what lay there before the run is still not its own.
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

// TestResumeLauncherFails: gangrun's own failure is told as such.
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
