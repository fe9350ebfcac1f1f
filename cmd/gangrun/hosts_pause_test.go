package main_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestPausedController: a controller that is stopped for longer than a host may be
// silent goes on with all hosts, and blames none.
func TestPausedController(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	bed := testhosts.Up(t, farHosts)
	r := startFar(t, bed, "h1:2,h2:2,h3:2,h4:2", farPrograms[0], farSteps, "--retries", "0", "--host-timeout", timeout.String(), "--orphan-grace", "1m")
	r.running(5)
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * timeout) // that is the fault
	if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code := r.finish(); code != 0 {
		t.Errorf("gangrun ended with %d", code)
	}
	r.whole(true)
	stood := 0
	for _, e := range r.events() {
		switch {
		case e.Kind == job.KindSuspect:
			t.Errorf("blamed: %s", e.Text)
		case e.Kind == job.KindNote && strings.Contains(e.Text, "gangrun itself stood still for "):
			stood++
		}
	}
	if stood != 1 {
		t.Errorf("that it stood still was told %d times", stood)
	}
	r.nothingLeft()
}

// TestControllerPausedForLong: agents that have ended their ranks since gangrun stood
// still are nobody's host's fault, and the next attempt may have all hosts.
func TestControllerPausedForLong(t *testing.T) {
	t.Parallel()
	const grace = 2 * time.Second
	bed := testhosts.Up(t, 2)
	r := startFarCommand(t, bed, "h1:1,h2:1", 2, job.MPINone, []string{"sh", "-c", `echo on; [ $GANGRUN_ATTEMPT = 2 ] || exec sleep 1000`},
		"--retries", "1", "--orphan-grace", grace.String(), "--host-timeout", "4s")
	r.lines(2, 1)
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.nothingLeft()
	time.Sleep(grace) // of the agents' silence some may have been before
	if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code := r.finish(); code != 0 {
		t.Errorf("gangrun ended with %d", code)
	}
	r.nothingLeft()
	report := r.report()
	if len(report.Attempts) != 2 {
		t.Fatalf("%d attempts", len(report.Attempts))
	}
	if c := report.Attempts[0].Cause; c == nil || c.Signature != "controller-paused" || c.Category != job.HostLost || !strings.Contains(c.Text, "gangrun itself stood still for ") {
		t.Errorf("the first attempt died of %+v", c)
	}
	if v := report.Attempts[0].Verdict; v == nil || len(v.Exclude.Hosts) > 0 {
		t.Errorf("the verdict is %+v", v)
	}
}
