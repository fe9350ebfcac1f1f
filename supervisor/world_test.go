package supervisor

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// world has a supervisor with fakes, and what the supervisor has emitted.
type world struct {
	launcher    *fakeLauncher
	placer      *fakePlacer
	checker     *fakeChecker
	checkpoints *fakeCheckpoints
	supervisor  *Supervisor
	spec        job.Spec
	// cancelAfter ends the run's context with order.Interrupted{signal}.
	cancelAfter time.Duration
	signal      syscall.Signal
	order       error // why a run that is resumed must end at once; nil if it need not
	logDir      func(int) (string, error)
	emitErr     error
	legs        [][]job.Event // the events of earlier starts of the batch job
	past        func(context.Context) ([]saves.Span, error)

	events   []job.Event
	evidence []job.Evidence
	report   runreport.Report
	err      error
	took     time.Duration
}

// newWorld returns a world with a job of two ranks and these gangs. The category of a failed gang is the Text
// of its first exit.
func newWorld(t *testing.T, gangs ...gang) *world {
	w := &world{spec: job.Default(), signal: syscall.SIGINT}
	w.spec.Command, w.spec.Ranks, w.spec.Workdir = []string{"python", "train.py"}, 2, "/work"
	w.checkpoints, w.checker, w.placer = &fakeCheckpoints{}, &fakeChecker{wait: 2 * time.Second}, &fakePlacer{wait: 3 * time.Second}
	w.launcher = &fakeLauncher{t: t, gangs: gangs, disk: w.checkpoints, placer: w.placer}
	w.logDir = func(n int) (string, error) { return fmt.Sprintf("/logs/%d", n), nil }
	w.supervisor = &Supervisor{
		Launcher: w.launcher, Asker: &w.launcher.asked, Placer: w.placer, Holder: w.placer, Checker: w.checker, Checkpoints: w.checkpoints,
		Diagnose: w.diagnose,
		Emit: func(e job.Event) error {
			w.events = append(w.events, e)
			return w.emitErr
		},
		Rand: func() float64 { return 0.5 }, // no jitter
	}
	return w
}

func (w *world) diagnose(e job.Evidence) job.Cause {
	w.evidence = append(w.evidence, e)
	switch e.Ended {
	case job.EndedTimeLimit:
		return job.Cause{Category: job.TimeLimit, Rank: -1, Confidence: 1}
	case job.EndedCancelled:
		return job.Cause{Category: job.Cancelled, Rank: -1, Confidence: 1}
	}
	x, ok := e.Outcome.First()
	if !ok {
		return job.Cause{Rank: -1}
	}
	return job.Cause{Category: job.Category(x.Text), Signature: x.Text, Rank: x.Rank, Host: x.Host, Confidence: 1, Text: x.String()}
}

func (w *world) run(t *testing.T) {
	t.Helper()
	if err := jobcheck.Spec(w.spec); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if w.cancelAfter > 0 {
			timer := time.AfterFunc(w.cancelAfter, func() { cancel(order.Interrupted{Signal: w.signal}) })
			defer timer.Stop()
		}
		began := time.Now()
		w.report, w.err = w.supervisor.Run(ctx, Run{ID: "r1", Controller: job.Controller{Host: "here", PID: 7}, Legs: w.legs, Past: w.past, LogDir: w.logDir}, w.spec)
		w.took = time.Since(began)
		if w.checkpoints.freeze || w.checkpoints.late {
			time.Sleep(time.Hour) // lets the processes end that were left behind
		}
		synctest.Wait()
	})
	if w.placer.held != 0 {
		t.Errorf("%d leases are still held", w.placer.held)
	}
	if last := w.events[len(w.events)-1]; last.Kind != job.KindEnded || !last.State.Final() {
		t.Errorf("the last event is %s %s", last.Kind, last.State)
	}
	for i, e := range w.events {
		if e.Time.IsZero() {
			t.Errorf("event %d (%s) has no time", i, e.Kind)
		}
	}
}

// story describes the events in short. It omits those of single ranks.
func (w *world) story() string {
	var words []string
	for _, e := range w.events {
		word := string(e.Kind)
		switch e.Kind {
		case job.KindStarted, job.KindExit, job.KindProgress, job.KindAllStarted, job.KindStop, job.KindNote:
			continue
		case job.KindState, job.KindEnded:
			word = string(e.State)
		case job.KindVerdict:
			word = string(e.Verdict.Action)
		case job.KindCause:
			word = string(e.Cause.Category)
		}
		if e.Kind == job.KindState && e.State == job.StateWaiting && e.Text != "" || e.Kind == job.KindCheckpoint && e.Attempt == 0 {
			continue // the placer's; the first look's
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (w *world) notes() string { return strings.Join(w.report.Notes, "\n") }

// dies returns a gang whose rank fails after 10 s. It reports the step before.
func dies(x job.Exit, why job.Category, step int64) gang {
	x.Text, x.Host = string(why), fmt.Sprintf("h%d", x.Rank+1)
	other := stopped(signalled(1-x.Rank, 15))
	other.Host = fmt.Sprintf("h%d", 2-x.Rank)
	return gang{launch: time.Second, life: 10 * time.Second, steps: step, exits: []job.Exit{x, other}}
}

// works returns a gang that succeeds after 10 s.
func works() gang {
	return gang{launch: time.Second, life: 10 * time.Second, steps: 100, exits: []job.Exit{exited(1, 0), exited(0, 0)}}
}

func (g gang) saving(step int64) gang {
	g.saves = &job.Checkpoint{Path: fmt.Sprintf("/ckpt/step-%d", step), Step: step, Time: time.Date(2000, 1, 1, 0, 0, 10, 0, time.UTC)}
	return g
}

// placerFunc returns a Placer that calls before, and then next.
func placerFunc(before func(), next Placer) Placer { return &hooked{before, next} }

type hooked struct {
	before func()
	next   Placer
}

func (h *hooked) Place(ctx context.Context, spec job.Spec, not job.Excluded, emit func(job.Event)) (Lease, error) {
	h.before()
	return h.next.Place(ctx, spec, not, emit)
}

func exited(rank, code int) job.Exit {
	return job.Exit{Rank: rank, Host: "h1", Status: job.Exited, Code: code}
}

func signalled(rank, signal int) job.Exit {
	return job.Exit{Rank: rank, Host: "h1", Status: job.Signalled, Signal: signal}
}

func stopped(x job.Exit) job.Exit { x.Stopped = true; return x }
