package supervisor

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/order"
)

// TestEndedFromOutside cancels a run, or lets its time limit pass, in each of its states.
func TestEndedFromOutside(t *testing.T) {
	long := gang{launch: 10 * time.Second, life: time.Hour}
	preflight, waiting, launching, running := time.Second, 4*time.Second, 6*time.Second, time.Minute
	network := dies(exited(0, 7), job.NetworkError, -1)
	tests := []struct {
		name   string
		after  time.Duration
		gangs  []gang
		story  string
		during string
	}{
		{"preflight", preflight, nil, "created preflight ", " during the preflight"},
		{"waiting", waiting, nil, "created preflight waiting ", " while waiting for a place"},
		{"launching", launching, []gang{long}, begin + "stopping outcome CATEGORY stop ", " while the gang was up"},
		{"running", running, []gang{long}, begin + "running stopping outcome CATEGORY stop ", " while the gang was up"},
		// The back-off goes from 16 to 17 s.
		{"back-off", 16*time.Second + 500*time.Millisecond, []gang{network}, begin + "running stopping outcome network-error restart ", " while waiting to restart"},
	}
	endings := []struct {
		name, reason string
		category     job.Category
		state        job.State
		code         int
		set          func(*world, time.Duration)
	}{
		{"SIGINT", "cancelled by SIGINT", job.Cancelled, job.StateCancelled, 130, func(w *world, d time.Duration) { w.cancelAfter = d }},
		{"SIGTERM", "cancelled by SIGTERM", job.Cancelled, job.StateCancelled, 143, func(w *world, d time.Duration) { w.cancelAfter, w.signal = d, syscall.SIGTERM }},
		{"SIGHUP", "cancelled by SIGHUP", job.Cancelled, job.StateCancelled, 129, func(w *world, d time.Duration) { w.cancelAfter, w.signal = d, syscall.SIGHUP }},
		{"time limit", "the time limit of LIMIT was reached", job.TimeLimit, job.StateFailed, 124, func(w *world, d time.Duration) {
			w.spec.Timeout = job.Duration(d)
			w.spec.Policy = map[job.Category]job.Action{job.NetworkError: job.RetryAgain}
		}},
	}
	for _, tt := range tests {
		for _, end := range endings {
			t.Run(tt.name+" "+end.name, func(t *testing.T) {
				w := newWorld(t, tt.gangs...)
				end.set(w, tt.after)
				if tt.name == "back-off" {
					w.supervisor.Rand = func() float64 { return 1 } // jitter carries it past the limit
					if end.state == job.StateFailed {
						w.spec.Timeout = job.Duration(17*time.Second + 100*time.Millisecond)
					}
				}
				w.run(t)
				story := strings.ReplaceAll(tt.story, "CATEGORY", string(end.category)) + string(end.state)
				if got := w.story(); got != story {
					t.Errorf("story\n got %s\nwant %s", got, story)
				}
				reason := strings.ReplaceAll(end.reason, "LIMIT", w.spec.Timeout.String()) + tt.during
				if r := w.report; r.State != end.state || *r.ExitCode != end.code || r.Reason != reason || w.err != nil {
					t.Errorf("got %s, %d, %q, %v, want %s, %d, %q", r.State, *r.ExitCode, r.Reason, w.err, end.state, end.code, reason)
				}
			})
		}
	}
}

func TestEndings(t *testing.T) {
	network := dies(exited(0, 7), job.NetworkError, -1)
	slowly := func(g gang) gang { g.dying = 5 * time.Second; return g }
	tests := []struct {
		name  string
		gangs []gang
		set   func(*world)
		state job.State
		code  int
		cause job.Category
	}{
		{"the gang ended well at the moment of the signal", []gang{{life: 10 * time.Second, exits: works().exits, launch: 0, steps: -1}},
			func(w *world) { w.cancelAfter = 15*time.Second + time.Nanosecond }, job.StateSucceeded, 0, ""},
		{"ranks that catch the signal and exit with 0", []gang{{life: time.Hour, catches: true}},
			func(w *world) { w.cancelAfter = time.Minute }, job.StateCancelled, 130, job.Cancelled},
		{"ranks that catch the signal at the time limit", []gang{{life: time.Hour, catches: true}},
			func(w *world) { w.spec.Timeout = job.Duration(time.Minute) }, job.StateFailed, 124, job.TimeLimit},
		{"ranks that catch the signal after their lease was lost", []gang{{life: time.Hour, catches: true}, works()},
			func(w *world) { w.placer.lose = time.Minute }, job.StateSucceeded, 0, ""},
		{"ranks that never started, and nobody says that they were stopped", []gang{{launch: time.Hour, unstarted: true}},
			func(w *world) { w.cancelAfter = time.Minute }, job.StateCancelled, 130, job.Cancelled},
		{"cancelled while a gang that had failed was ended", []gang{slowly(dies(exited(0, 3), job.ImportError, -1))},
			func(w *world) { w.cancelAfter = 18 * time.Second }, job.StateFailed, 3, job.ImportError},
		{"cancelled while a gang that was to be restarted was ended", []gang{slowly(network)},
			func(w *world) { w.cancelAfter = 18 * time.Second }, job.StateCancelled, 130, job.NetworkError},
		{"lease lost while a gang that had failed was ended", []gang{slowly(dies(exited(0, 3), job.ImportError, -1))},
			func(w *world) { w.placer.lose = 13 * time.Second }, job.StateFailed, 3, job.ImportError},
		{"cancelled while a gang that had lost its lease was ended", []gang{{life: time.Hour}},
			func(w *world) { w.placer.lose, w.cancelAfter = 5*time.Second, 12*time.Second }, job.StateCancelled, 130, job.Cancelled},
		{"cancelled before a place was found, and a lease all the same", nil,
			func(w *world) { w.placer.deaf, w.cancelAfter = true, 4*time.Second }, job.StateCancelled, 130, ""},
		{"a launcher that says no more than that it was cancelled", []gang{{life: time.Hour, endErr: order.Interrupted{Signal: syscall.SIGINT}}},
			func(w *world) { w.cancelAfter = time.Minute }, job.StateCancelled, 130, job.Cancelled},
		{"a launcher that fails while it ends the gang", []gang{{life: time.Hour, endErr: errors.New("no agent")}},
			func(w *world) { w.cancelAfter = time.Minute }, job.StateFailed, 70, ""},
		{"no time for a restart: the job's own failure counts", []gang{network},
			func(w *world) { w.spec.Timeout = job.Duration(16*time.Second + 800*time.Millisecond) }, job.StateFailed, 7, job.NetworkError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.gangs...)
			tt.set(w)
			w.run(t)
			if w.report.State != tt.state || *w.report.ExitCode != tt.code || (w.err != nil) != (tt.code == 70) {
				t.Errorf("got %s, %d, %v, want %s, %d", w.report.State, *w.report.ExitCode, w.err, tt.state, tt.code)
			}
			got := job.Category("")
			if c := w.report.Cause(); c != nil {
				got = c.Category
			}
			if got != tt.cause {
				t.Errorf("cause %q, want %q", got, tt.cause)
			}
			if len(w.launcher.runs) != len(tt.gangs) {
				t.Errorf("%d attempts, want %d", len(w.launcher.runs), len(tt.gangs))
			}
		})
	}
}

// TestSavedWhenCancelled: the report has the checkpoint that a cancelled gang has written at the last moment.
func TestSavedWhenCancelled(t *testing.T) {
	w := newWorld(t, gang{life: time.Hour}.saving(7))
	w.spec.CheckpointDir, w.checkpoints.wait, w.cancelAfter = "/ckpt", time.Second, time.Minute
	w.run(t)
	if s := w.report.Attempts[0].Saved; s == nil || s.Step != 7 {
		t.Errorf("saved %+v", s)
	}
}

// TestHintAtResume: the hint of a run that was ended names --resume if there is a checkpoint.
func TestHintAtResume(t *testing.T) {
	const hint, more = "do as you like", ", or run with --resume to go on from the last checkpoint"
	limit := func(w *world) { w.spec.Timeout = job.Duration(time.Minute) }
	cancel := func(w *world) { w.cancelAfter = time.Minute }
	long := gang{life: time.Hour}
	for name, c := range map[string]struct {
		gang gang
		set  func(*world)
		dir  string
		want string
	}{
		"cancelled":                           {long, cancel, "/ckpt", "run it again with --resume to go on from its newest good checkpoint, if there is one"},
		"cancelled, and it resumes":           {long, func(w *world) { cancel(w); w.spec.Resume = true }, "/ckpt", "run it again: it goes on from its newest good checkpoint, if there is one"},
		"cancelled, no checkpoint directory":  {long, cancel, "", hint},
		"time limit":                          {long, limit, "/ckpt", hint + more},
		"time limit, no checkpoint directory": {long, limit, "", hint},
		"failed by itself":                    {dies(exited(0, 3), job.ImportError, -1), func(*world) {}, "/ckpt", hint},
	} {
		w := newWorld(t, c.gang)
		w.spec.CheckpointDir = c.dir
		c.set(w)
		w.supervisor.Diagnose = func(e job.Evidence) job.Cause {
			cause := w.diagnose(e)
			cause.Hint = hint
			return cause
		}
		w.run(t)
		if got := w.report.Cause(); got == nil || got.Hint != c.want {
			t.Errorf("%s: %+v, want the hint %q", name, got, c.want)
		}
	}
}

// TestLateStart: a gang that is being ended is not running, even if its last rank starts only then.
func TestLateStart(t *testing.T) {
	var states []job.State
	l := &loop{Supervisor: &Supervisor{Emit: func(e job.Event) error {
		if e.Kind == job.KindState {
			states = append(states, e.State)
		}
		return nil
	}}}
	emit := l.watch(&gangEnd{gang: t.Context(), wish: t.Context()}, 1)
	emit(job.Event{Kind: job.KindStop, Text: "cancelled"})
	emit(job.Event{Kind: job.KindAllStarted})
	emit(job.Event{Kind: job.KindStop, Text: "cancelled"})
	if len(states) != 1 || states[0] != job.StateStopping {
		t.Errorf("states %q", states)
	}
}

// TestPanicsPass: gangrun does not recover from a panic, but releases the lease.
func TestPanicsPass(t *testing.T) {
	w := newWorld(t, dies(exited(0, 7), job.NetworkError, -1))
	w.supervisor.Diagnose = func(job.Evidence) job.Cause { panic("a bug") }
	defer func() {
		if recover() != "a bug" || w.placer.held != 0 {
			t.Errorf("%d leases are held", w.placer.held)
		}
	}()
	w.spec.Preflight = job.PreflightOff
	w.placer.wait, w.launcher.gangs[0].launch, w.launcher.gangs[0].life = 0, 0, 0
	_, err := w.supervisor.Run(t.Context(), Run{LogDir: w.logDir}, w.spec)
	t.Errorf("no panic, but %v", err)
}

// TestLostLeaseIsNamed checks that the stop event of a gang that has lost its lease gives this reason. It must not say
// that gangrun was told to end the gang.
func TestLostLeaseIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*world)
		want string
	}{
		"lost":      {func(w *world) { w.placer.lose, w.spec.Retries = 5*time.Second, 0 }, "the lease was lost: "},
		"cancelled": {func(w *world) { w.cancelAfter = time.Minute }, "cancelled by SIGINT"},
	} {
		w := newWorld(t, gang{life: time.Hour})
		c.set(w)
		w.run(t)
		var why []string
		for _, e := range w.events {
			if e.Kind == job.KindStop || e.Kind == job.KindState && e.State == job.StateStopping {
				why = append(why, e.Text)
			}
		}
		if len(why) != 2 || !strings.HasPrefix(why[0], c.want) || why[0] != why[1] {
			t.Errorf("%s: the gang was ended because of %q", name, why)
		}
	}
}
