package supervisor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch"
)

// slowLauncher runs gangs whose pulses come once a second. In the first gang, a CPU limit holds up rank 1.
type slowLauncher struct {
	*fakeLauncher
	lasts time.Duration
	// started is true if all ranks of the first gang have started before its pulses begin.
	started bool
}

func (s *slowLauncher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if s.started && a.Number == 1 {
		emit(job.Event{Kind: job.KindAllStarted})
	}
	pulses := make([]job.Pulse, len(a.Placement.Ranks))
	for range int(s.lasts / time.Second) {
		if !pause(ctx, time.Second) {
			break
		}
		for i, r := range a.Placement.Ranks {
			p := &pulses[i]
			p.Rank, p.State, p.Delays.Cores = r.Rank, job.ProcessRunning, 1
			held := 0 * time.Second
			if a.Number == 1 && r.Rank == 1 {
				held = 400 * time.Millisecond
			}
			p.Delays.Ran += job.Duration(time.Second - held)
			p.Delays.Waited += job.Duration(held)
			p.Delays.Throttled += job.Duration(held)
			pulse := job.Pulses{Host: r.Host, Time: time.Now(), Every: job.Duration(time.Second), Ranks: []job.Pulse{*p}}
			emit(job.Event{Kind: job.KindPulse, Attempt: a.Number, Host: r.Host, Pulses: &pulse})
		}
	}
	return s.fakeLauncher.Run(ctx, a, emit)
}

func TestStragglers(t *testing.T) {
	const begin, attempt, end = "created preflight waiting placed launching attempt ", "waiting placed launching attempt ", "running outcome succeed succeeded"
	for name, c := range map[string]struct {
		set   func(*world)
		story string
		nots  []job.Excluded
	}{
		"advice": {nil, begin + "straggler " + end, []job.Excluded{{}}},
		"elsewhere": {func(w *world) {
			w.spec.Policy = map[job.Category]job.Action{job.Straggler: job.RetryElsewhere}
			w.supervisor.Elsewhere = true
		}, begin + "straggler stopping outcome straggler restart " + attempt + end, []job.Excluded{{}, {Hosts: []string{"h2"}}}},
		"again": {func(w *world) {
			w.spec.Policy = map[job.Category]job.Action{job.Straggler: job.RetryAgain}
		}, begin + "straggler stopping outcome straggler restart " + attempt + end, []job.Excluded{{}, {}}},
		"elsewhere, but there is no other host": {func(w *world) {
			w.spec.Policy = map[job.Category]job.Action{job.Straggler: job.RetryElsewhere}
		}, begin + "straggler " + end, []job.Excluded{{}}},
		"elsewhere, but no restart is left": {func(w *world) {
			w.spec.Policy = map[job.Category]job.Action{job.Straggler: job.RetryElsewhere}
			w.supervisor.Elsewhere, w.spec.Retries = true, 0
		}, begin + "straggler " + end, []job.Excluded{{}}},
		"off": {func(w *world) { w.spec.StragglerWindow = 0 }, begin + end, []job.Excluded{{}}},
		"different programs": {func(w *world) {
			w.spec.Apps = []job.App{{Command: []string{"a"}, Ranks: 1}, {Command: []string{"b"}, Ranks: 3}}
		}, begin + end, []job.Excluded{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			good := gang{launch: time.Second, life: time.Second, steps: 100, exits: []job.Exit{exited(0, 0), exited(1, 0), exited(2, 0), exited(3, 0)}}
			w := newWorld(t, good, good)
			w.supervisor.Launcher = &slowLauncher{fakeLauncher: w.launcher, lasts: 5 * time.Minute}
			w.spec.Ranks = 4
			if c.set != nil {
				c.set(w)
			}
			w.run(t)
			if got := w.story(); got != c.story {
				t.Errorf("it went\n%s, want\n%s", got, c.story)
			}
			if len(w.placer.nots) != len(c.nots) {
				t.Fatalf("placed without %v, want %v", w.placer.nots, c.nots)
			}
			for i, not := range c.nots {
				if got := w.placer.nots[i]; strings.Join(got.Hosts, " ") != strings.Join(not.Hosts, " ") {
					t.Errorf("placed without %v, want %v", got, not)
				}
			}
			for _, e := range w.events {
				switch {
				case e.Kind == job.KindStraggler && (e.Rank != 1 || e.Host != "h2" || e.Straggler.Reason != job.SlowQuota || e.Hint == "" || e.Text != e.Straggler.Text):
					t.Errorf("told %+v", e)
				case e.Kind == job.KindCause && (e.Cause.Rank != 1 || e.Cause.Host != "h2" || e.Cause.Signature != "slow-cpu-quota"):
					t.Errorf("the cause is %+v", e.Cause)
				case e.Kind == job.KindStop && (e.Stop != job.StopFailure || !strings.Contains(e.Text, "is slow")):
					t.Errorf("stopped by %+v", e)
				}
			}
		})
	}
}

func TestEachReasonHasAdvice(t *testing.T) {
	for _, r := range []job.StragglerReason{job.SlowUnknown, job.SlowWork, job.SlowQuota, job.SlowShared, job.SlowCores, job.SlowDisk, job.SlowNetwork, job.SlowThrottle, job.SlowMemory} {
		if watch.Advice(r) == "" {
			t.Errorf("none for %s", r)
		}
	}
}
