package suite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// cancel: cancelling the context ends the gang with SIGTERM.
func cancel(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`trap 'echo got TERM; exit 0' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	for r := range 4 {
		g.exists("ready" + strconv.Itoa(r))
	}
	end()
	o := wait()
	for r := range 4 {
		if e := exitOf(t, o, r); !e.Stopped || !e.Good() || g.log(r, "out") != "got TERM\n" {
			t.Errorf("rank %d: %+v, wrote %q; want it to get TERM and to be stopped", r, e, g.log(r, "out"))
		}
	}
}

// cancelEarly: an order to stop takes effect, however early it comes.
func cancelEarly(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, grace: time.Hour, command: []string{"sleep", "1000"}})
	for n := range 20 {
		g.attempt.Number, g.attempt.LogDir = n+1, t.TempDir()
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := g.launcher.Run(ctx, g.attempt, func(job.Event) {})
			done <- err
		}()
		for range 50 * n { // at different times, from the beginning to the middle of Run
			runtime.Gosched()
		}
		end()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		case <-time.After(limit):
			t.Fatalf("attempt %d: the gang did not end within %s", n+1, limit)
		}
	}
}

// grace: ranks that ignore SIGTERM are killed, but not before the grace period is over.
func grace(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, grace: 300 * time.Millisecond, command: sh(`trap '' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	g.exists("ready0")
	g.exists("ready1")
	before := time.Now()
	end()
	o := wait()
	if took := time.Since(before); took < 300*time.Millisecond {
		t.Errorf("killed after %s, before its grace was over", took)
	}
	for r := range 2 {
		if e := exitOf(t, o, r); !e.Stopped || e.Signal != 9 {
			t.Errorf("rank %d: %+v, want it killed", r, e)
		}
	}
}

// hurry: Hurry ends at once a gang that is in its grace period.
func hurry(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, grace: time.Hour, command: sh(`trap '' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	g.exists("ready0")
	g.exists("ready1")
	end()
	g.await("a stop event", func() bool { return len(g.find(job.KindStop)) > 0 })
	g.launcher.Hurry()
	o := wait()
	for r := range 2 {
		if e := exitOf(t, o, r); e.Signal != 9 {
			t.Errorf("rank %d: %+v, want it killed", r, e)
		}
	}
}

// signals: a rank that handles a signal receives it, even if the rank is below a shell. No other rank ends because of
// the signal.
func signals(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`
case $RANK in
0) trap 'echo got > got0; exit 0' USR1; echo ready > ready0; while :; do sleep 0.02; done ;;
1) sh -c "trap 'echo got > got1; exit 0' USR1; echo ready > ready1; while :; do sleep 0.02; done"; exit 0 ;;
*) echo ready > ready$RANK; while ! [ -e got0 ] || ! [ -e got1 ] || ! [ -e reported ]; do sleep 0.02; done ;;
esac`)})
	wait := g.start(t.Context())
	for r := range 4 {
		g.exists("ready" + strconv.Itoa(r))
	}
	g.launcher.Signal(syscall.SIGUSR1)
	g.await("the reports of both hosts", func() bool { return len(g.find(job.KindSignal)) == 2 })
	if err := os.WriteFile(filepath.Join(g.attempt.Workdir, "reported"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := wait(); !o.Good(4) {
		t.Errorf("%+v", o)
	}
	events := g.find(job.KindSignal)
	slices.SortFunc(events, func(a, b job.Event) int { return cmp.Compare(a.Host, b.Host) })
	if len(events) != 2 || events[0].Reached == nil || *events[0].Reached != 2 || events[1].Reached == nil || *events[1].Reached != 0 {
		t.Errorf("reported as %+v", events)
	}
}

// strays: processes that ranks leave behind end with the gang, however they hide.
func strays(t *testing.T, b Bed) {
	for name, script := range map[string]string{
		"child":          `sleep 1000 & echo $! > pid$RANK`,
		"setsid":         `setsid sh -c 'echo $$ > pid'$RANK'; exec sleep 1000' & while [ ! -s pid$RANK ]; do sleep 0.01; done`,
		"double fork":    `(setsid sh -c 'trap "" TERM HUP; echo $$ > pid'$RANK'; while :; do sleep 0.05; done' >/dev/null 2>&1 &) ; while [ ! -s pid$RANK ]; do sleep 0.01; done`,
		"closed streams": `setsid sh -c 'exec >&- 2>&- <&-; trap "" TERM; echo $$ > pid'$RANK'; while :; do sleep 0.05; done' & while [ ! -s pid$RANK ]; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			g := b.gang(t, options{ranks: 2, grace: 200 * time.Millisecond, command: sh(script)})
			if o := g.run(t.Context()); !o.Good(2) {
				t.Fatalf("%+v", o)
			}
			g.exists("pid0")
			g.noneLeft()
		})
	}
}

// stoppedRanks: a rank stopped by SIGSTOP ends, too, and is reported as having been stopped.
func stoppedRanks(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, grace: time.Hour, command: sh(`trap 'exit 5' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	g.exists("ready0")
	if err := syscall.Kill(g.pid(0), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	g.await("rank 0 stopped", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(g.pid(0)) + "/stat")
		return err == nil && bytes.Contains(stat, []byte(") T "))
	})
	g.exists("ready1")
	end()
	o := wait()
	if e := exitOf(t, o, 0); e.Code != 5 {
		t.Errorf("rank 0: %+v, want it to have acted on SIGTERM with code 5", e)
	}
	states := map[int]job.ProcessState{}
	for _, e := range g.find(job.KindActivity) {
		for _, a := range e.Activity {
			states[a.Rank] = a.State
			if a.Host != e.Host || a.Quiet < 0 || a.Idle != nil {
				t.Errorf("on %s: %+v, want a rank there that has never reported a step", e.Host, a)
			}
		}
	}
	if len(states) != 2 || states[0] != job.ProcessStopped || states[1] == job.ProcessStopped {
		t.Errorf("the states of the ranks were reported as %v, want rank 0 of 2 stopped", states)
	}
}

// kill: if any process of gangrun on a host is killed, no process of the gang is left when the next attempt starts.
// That attempt gets a new agent.
func kill(t *testing.T, b Bed) {
	const hidden = `(setsid sh -c 'trap "" TERM; echo $$ > pid'$RANK'; while :; do sleep 0.05; done' >/dev/null 2>&1 &) ; while [ ! -s pid$RANK ]; do sleep 0.01; done; echo ready > ready$RANK; exec sleep 1000`
	for name, whom := range map[string][]string{
		"agent":               {"agent"},
		"watchdog":            {"watchdog"},
		"outer watchdog":      {"outer watchdog"},
		"agent and watchdog":  {"watchdog", "agent"},
		"both watchdogs":      {"outer watchdog", "watchdog"},
		"all but the ranks":   {"outer watchdog", "watchdog", "agent"},
		"agent and outer one": {"outer watchdog", "agent"},
	} {
		t.Run(name, func(t *testing.T) {
			g := b.gang(t, options{ranks: 2, grace: 500 * time.Millisecond, command: sh(hidden)})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wait := g.start(ctx)
			g.exists("ready0")
			g.exists("ready1")
			found := b.Agents(os.Getpid())
			for _, one := range whom {
				pids := found[one]
				if len(pids) != 1 {
					t.Fatalf("%d processes are called %s, want 1: %v", len(pids), one, pids)
				}
				if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if name == "outer watchdog" { // the other processes work without it
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			o := wait()
			if len(whom) < 3 {
				g.noneLeft()
			}
			if len(o.Exits) != 2 || len(o.Unreaped) != 0 {
				t.Errorf("outcome %+v, want 2 exits and none unreaped", o)
			}
			first, ok := o.First()
			if slices.Contains(whom, "agent") && (!ok || first.Status != job.Lost) {
				t.Errorf("first is %+v, want a lost rank", first)
			}
			if name == "outer watchdog" && exitOf(t, o, 0).Status == job.Lost {
				t.Errorf("the gang was lost without its outer watchdog: %+v", o)
			}
			if slices.Contains(whom, "watchdog") && o.Good(2) {
				t.Errorf("the gang ended well without its watchdog")
			}
			g.attempt.Number, g.attempt.LogDir, g.attempt.Command = 2, t.TempDir(), []string{"true"}
			if o := g.run(t.Context()); !o.Good(2) {
				t.Errorf("the next attempt: %+v", o)
			}
			g.noneLeft()
		})
	}
}
