package supervisor

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/exitcode"
)

// resume lets another supervisor continue the run from the events in past, after a while.
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

// adopter is a fakeLauncher whose gangs outlive a controller, and report everything again.
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

// TestResumeAnywhere cuts runs off after each of their events. The supervisor that continues the run comes to
// the same end, and emits no event twice.
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
					extra = 1 // the attempt is lost, and another one is made
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

// lastAttempt returns the number of the attempt that is running, or 0, and whether all of its ranks have
// started.
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

// once checks that no event of an attempt is in the journal twice.
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
