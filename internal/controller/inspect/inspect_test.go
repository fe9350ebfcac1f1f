package inspect

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/vitals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running returns a run whose controller is this process.
func running(t *testing.T) home.Run {
	t.Helper()
	run, journal, err := home.Create(t.TempDir(), time.Now(), "", nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	self := home.Self()
	control, err := run.Control(self)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = journal.Close(), control.Close() })
	for _, e := range []job.Event{
		{Kind: job.KindCreated, Run: run.ID, Controller: &self, Spec: &job.Spec{Ranks: 2}},
		{Kind: job.KindState, State: job.StateRunning},
	} {
		e.Time = time.Now()
		if err := journal.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// group returns one group that has all ranks.
func group(stacks []job.RankStack) []job.StackGroup {
	return []job.StackGroup{{Ranks: []int{stacks[0].Rank}, Where: stacks[0].Threads[0].Syscall}}
}

func TestStacks(t *testing.T) {
	run := running(t)
	var calls atomic.Int32
	a := Answerer{
		Run: run, Group: group,
		Gang: func() (int, []int, string) { return 3, []int{0, 1}, "" },
		Stacks: func(_ context.Context, limit time.Duration) []job.RankStack {
			calls.Add(1)
			return []job.RankStack{{Rank: 0, Host: "h1", Threads: []job.ThreadStack{{Main: true, State: job.ProcessSleeping, Syscall: "read"}}}}
		},
	}
	stop := a.Listen()
	defer stop()
	var all sync.WaitGroup
	for range 4 { // requests that come at the same time get one answer or two
		all.Go(func() {
			s, err := Stacks(t.Context(), run)
			if err != nil {
				t.Error(err)
				return
			}
			if s.Attempt != 3 || len(s.Stacks) != 1 || len(s.Groups) != 1 || s.Groups[0].Where != "read" || len(s.Missing) != 1 || s.Missing[0] != 1 {
				t.Errorf("got %+v", s)
			}
		})
	}
	all.Wait()
	if n := calls.Load(); n > 2 {
		t.Errorf("the stacks were collected %d times", n)
	}
}

func TestRefused(t *testing.T) {
	run := running(t)
	stop := Answerer{Run: run, Group: group, Gang: func() (int, []int, string) { return 0, nil, "it is waiting" }}.Listen()
	defer stop()
	_, err := Stacks(t.Context(), run)
	var failed *failure.Error
	if !errors.As(err, &failed) || failed.Code != failure.CodeMayPass || !strings.Contains(err.Error(), "has no ranks now: it is waiting") || failed.Hint == "" {
		t.Errorf("got %v", err)
	}
}

// TestNobodyToAsk checks that Stacks fails at once if the run has ended or has no controller.
func TestNobodyToAsk(t *testing.T) {
	for name, c := range map[string]struct {
		last job.Event
		want string
	}{
		"ended": {job.Event{Kind: job.KindEnded, State: job.StateSucceeded}, "has ended: it is succeeded"},
		"lost":  {job.Event{Kind: job.KindAttached}, "has no controller"},
	} {
		t.Run(name, func(t *testing.T) {
			run, journal, err := home.Create(t.TempDir(), time.Now(), "", nil, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			gone := home.Self()
			gone.Start++
			for _, e := range []job.Event{{Kind: job.KindCreated, Run: run.ID, Controller: &gone, Spec: &job.Spec{Ranks: 2}}, c.last} {
				e.Time = time.Now()
				if err := journal.Append(e); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Stacks(t.Context(), run); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestNoAnswer checks that Stacks gives up if the controller does not answer, and removes its request.
func TestNoAnswer(t *testing.T) {
	run := running(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Stacks(ctx, run); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if ids, err := run.TakeStacks(home.Self()); err != nil || len(ids) != 0 {
		t.Errorf("left behind: %v, %v", ids, err)
	}
}

// TestLive checks that the live file is written at most every two seconds, and removed at the end.
func TestLive(t *testing.T) {
	run := running(t)
	synctest.Test(t, func(t *testing.T) {
		l := StartLive(run)
		read := func() *vitals.Vitals {
			t.Helper()
			synctest.Wait()
			text, err := run.ReadVitals()
			if err != nil {
				t.Fatal(err)
			}
			var v vitals.Vitals
			if text == nil {
				return nil
			}
			if err := json.Unmarshal(text, &v); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return &v
		}
		time.Sleep(10 * time.Second)
		if v := read(); v != nil {
			t.Errorf("before the first pulse there is %+v", v)
		}
		pulse := func(ranks int, cpu time.Duration) {
			p := job.Pulses{Host: "h1", Time: time.Now()}
			for rank := range ranks {
				p.Ranks = append(p.Ranks, job.Pulse{Rank: rank, CPU: job.Duration(cpu)})
			}
			l.Pulse(1, p)
		}
		begun := time.Now()
		for range 40 {
			pulse(2, time.Since(begun)/2)
			time.Sleep(time.Second / 2)
		}
		v := read()
		if v == nil || len(v.Ranks) != 2 || *v.Ranks[0].CPU != 50 || time.Duration(v.Every) != writeEvery || time.Since(v.At) > writeEvery {
			t.Errorf("after a while there is %+v", v)
		}
		last := v.At
		pulse(1000, time.Second)
		time.Sleep(writeEvery)
		if v = read(); len(v.Ranks) != 1000 || time.Duration(v.Every) != 4*writeEvery || !v.At.After(last) {
			t.Errorf("%d ranks, again in %v", len(v.Ranks), v.Every)
		}
		last = v.At
		pulse(1000, time.Second)
		time.Sleep(3 * writeEvery)
		if v = read(); !v.At.Equal(last) {
			t.Error("a file of 1000 ranks was written too soon")
		}
		pulse(1, time.Second) // the other ranks have ended
		time.Sleep(5 * writeEvery)
		l.Stop()
		if v = read(); v != nil {
			t.Errorf("at the end there is %+v", v)
		}
		if v := l.Last(); v == nil || len(v.Ranks) != 1000 || v.Attempt != 1 {
			t.Errorf("the last vitals are not those of all ranks: %+v", v)
		}
	})
}

func BenchmarkLive(b *testing.B) {
	run, journal, err := home.Create(b.TempDir(), time.Now(), "", nil, rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	defer journal.Close()
	l := Live{run: run}
	p := job.Pulses{Host: "h1", Time: time.Now()}
	for rank := range 512 {
		p.Ranks = append(p.Ranks, job.Pulse{Rank: rank, Progress: &job.Progress{Step: 12}})
	}
	for b.Loop() {
		l.Pulse(1, p)
		l.once(time.Now())
	}
}
