package main_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestPausedController stops the controller for longer than a host may be silent. After that, the controller must go
// on with all hosts and blame none.
func TestPausedController(t *testing.T) {
	t.Parallel()
	const timeout = 8 * time.Second
	bed := testhosts.Up(t, farHosts)
	r := startFar(t, bed, "h1:2,h2:2,h3:2,h4:2", farPrograms[0], farSteps, "--retries", "0", "--host-timeout", timeout.String(), "--orphan-grace", "1m")
	r.running(5)
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * timeout) // the length of the fault
	woke := time.Now()
	if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.letGo()
	if code := r.finish(); code != 0 {
		t.Errorf("gangrun ended with %d", code)
	}
	r.whole(true)
	stood := 0
	for _, e := range r.events() {
		_, text, _ := strings.Cut(e.Text, "gangrun itself stood still for ")
		text, _, _ = strings.Cut(text, " ")
		switch took, err := time.ParseDuration(text); {
		case e.Kind == job.KindSuspect && e.Time.After(woke) && e.Since.Before(woke), e.Kind == job.KindExit && e.Exit.Status == job.Lost:
			t.Errorf("blamed: %+v", e)
		case e.Kind == job.KindNote && err == nil && took >= timeout: // a shorter time may come from a slow machine
			stood++
		}
	}
	if stood != 1 {
		t.Errorf("that it stood still was told %d times", stood)
	}
	r.nothingLeft()
}

// TestControllerPausedForLong stops the controller until the agents have ended their ranks. gangrun must not blame the
// hosts, and the next attempt may use all of them.
func TestControllerPausedForLong(t *testing.T) {
	t.Parallel()
	const grace = 8 * time.Second
	start := func(t *testing.T, script string) *farRun {
		t.Parallel()
		return startFarCommand(t, testhosts.Up(t, 2), "h1:1,h2:1", 2, job.MPINone, []string{"sh", "-c", script},
			"--retries", "2", "--orphan-grace", grace.String())
	}
	pause := func(r *farRun) {
		r.t.Helper()
		if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			r.t.Fatal(err)
		}
		r.nothingLeft()
		time.Sleep(grace) // the length of the fault; a part of the agents' silence may have been before the stop
		if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			r.t.Fatal(err)
		}
		r.letGo()
		if code := r.finish(); code != 0 {
			r.t.Errorf("gangrun ended with %d", code)
		}
		r.nothingLeft()
		for _, a := range r.report().Attempts {
			if a.Verdict != nil && len(a.Verdict.Exclude.Hosts) > 0 {
				r.t.Errorf("attempt %d: %+v, %+v", a.Number, a.Cause, a.Verdict)
			}
		}
	}
	t.Run("in an attempt", func(t *testing.T) {
		r := start(t, `echo on; [ $GANGRUN_ATTEMPT != 1 ] || exec sleep 1000`)
		r.lines(2, 1)
		pause(r)
		if all := r.report().Attempts; len(all) != 2 || all[0].Cause == nil || all[0].Cause.Signature != "controller-paused" ||
			all[0].Cause.Category != job.HostLost || !strings.Contains(all[0].Cause.Text, "gangrun itself stood still for ") {
			t.Errorf("the attempts were %+v", all)
		}
	})
	t.Run("between attempts", func(t *testing.T) {
		r := start(t, `[ $GANGRUN_ATTEMPT != 1 ] || { echo "RuntimeError: NCCL error: unhandled system error"; exit 1; }; until test -e end; do sleep 0.01; done`)
		r.journalled(job.KindVerdict, 1)
		pause(r)
		for _, a := range r.report().Attempts[1:] {
			if a.Cause != nil && a.Cause.Signature != "controller-paused" {
				t.Errorf("attempt %d died of %+v", a.Number, a.Cause)
			}
		}
	})
}
