package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// deafRanks is the script of ranks that SIGTERM does not end.
const deafRanks = `trap "echo >told.$RANK" TERM; echo >ready.$RANK; while :; do sleep 0.01; done`

// ask runs a command on the controller's machine. It returns the exit code and the output.
func (r *farRun) ask(args ...string) (code int, out, errs string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := r.bed.Controller().Command(ctx, args...)
	var stdout, stderr lockedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code is in ProcessState
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// ranksLeft checks that every host has ranks, or that no host has any.
func (r *farRun) ranksLeft(want bool) {
	r.t.Helper()
	for _, h := range r.bed.Hosts() {
		ranks, err := h.Processes("GANGRUN_RANK=")
		if err != nil {
			r.t.Fatal(err)
		}
		if len(ranks) > 0 != want {
			r.t.Errorf("ranks on %s: %v, want some: %v", h.Name(), ranks, want)
		}
	}
}

// told waits until both ranks have got SIGTERM so many times.
func (r *farRun) told(times int) {
	for rank := range 2 {
		path, limit := filepath.Join(r.bed.Shared(), fmt.Sprintf("told.%d", rank)), time.Now().Add(patience)
		for text := ""; strings.Count(text, "\n") < times; time.Sleep(10 * time.Millisecond) {
			data, _ := os.ReadFile(path) // the file may not exist yet
			if text = string(data); time.Now().After(limit) {
				r.t.Errorf("rank %d was told %q, want %d times", rank, text, times)
				return
			}
		}
	}
}

// stopped checks the end of a run that gangrun stop has ended without the controller.
func (r *farRun) stopped(code int, out, errs, reason string) {
	r.t.Helper()
	s, err := r.shared().Summary()
	if code != 0 || !strings.Contains(out, ": cancelled") || err != nil || s.State != job.StateCancelled {
		r.t.Errorf("gangrun stop ended with %d, the run is %s, %v: %s%s", code, s.State, err, out, errs)
	}
	if !strings.Contains(errs, reason) {
		r.t.Errorf("gangrun stop said %q, want %q", errs, reason)
	}
	r.ranksLeft(false)
}

// TestStopLost checks that gangrun stop ends a run whose controller is gone. The controller may die before gangrun
// stop was called, or while it waits. gangrun stop must not wait until the agents end the ranks.
func TestStopLost(t *testing.T) {
	t.Parallel()
	const up = "while the gang was up"
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		r := startShared(t, deafRanks, "--orphan-grace", "1h", "--grace", "1h")
		r.made("ready.0", "ready.1")
		r.killController(r.cmd)
		<-r.exited
		r.ranksLeft(true)
		code, out, errs := r.ask(r.gangrun, "stop", "--now", "last")
		r.stopped(code, out, errs, "cancelled by gangrun stop --now (root on ")
		if !strings.Contains(errs, up) {
			t.Errorf("gangrun stop said %q", errs)
		}
	})
	t.Run("by several", func(t *testing.T) {
		t.Parallel()
		r := startShared(t, deafRanks, "--orphan-grace", "1h", "--grace", "2s")
		r.made("ready.0", "ready.1")
		r.killController(r.cmd)
		<-r.exited
		type end struct {
			code      int
			out, errs string
		}
		ends := make(chan end)
		for range 4 {
			go func() {
				code, out, errs := r.ask(r.gangrun, "stop", "last")
				ends <- end{code, out, errs}
			}()
		}
		all := ""
		for range 4 {
			e := <-ends
			if all += e.errs; e.code != 0 || !strings.Contains(e.out, ": cancelled") {
				t.Errorf("gangrun stop ended with %d: %s%s", e.code, e.out, e.errs)
			}
		}
		if strings.Count(all, "this process ends the run") != 1 {
			t.Errorf("they said %s", all)
		}
		r.ranksLeft(false)
	})
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		// No process ends these ranks. They end by themselves when they have got SIGTERM a second time.
		const ranks = `trap "echo >>told.$RANK" TERM; echo >ready.$RANK; until test -e end; do sleep 0.01; done`
		r := startShared(t, ranks, "--orphan-grace", "1h", "--grace", "1h")
		r.made("ready.0", "ready.1")
		var killing sync.WaitGroup
		killing.Go(func() {
			r.told(1)
			_ = r.cmd.Process.Kill()
			<-r.exited
			r.told(2)
			// Without the file, the ranks would be left.
			_ = os.WriteFile(filepath.Join(r.bed.Shared(), "end"), nil, 0o600)
		})
		code, out, errs := r.ask(r.gangrun, "stop", "last")
		killing.Wait()
		r.stopped(code, out, errs, up)
	})
	t.Run("nothing left", func(t *testing.T) {
		t.Parallel()
		r := startShared(t, "echo >ready.$RANK; exec sleep 1000", "--orphan-grace", "8s")
		r.made("ready.0", "ready.1")
		r.killController(r.cmd)
		<-r.exited
		r.nothingLeft()
		code, out, errs := r.ask(r.gangrun, "stop", "last")
		r.stopped(code, out, errs, "after its controller had died; nothing of its gang was left")
	})
}

// TestStopForce checks that, on another host, gangrun stop ends a run without its controller only with --force.
// Without it, gangrun stop says that the controller no longer holds its lock.
func TestStopForce(t *testing.T) {
	t.Parallel()
	r := startShared(t, deafRanks, "--orphan-grace", "1h", "--grace", "1h")
	r.made("ready.0", "ready.1")
	run := r.shared()
	var killing sync.WaitGroup
	killing.Go(func() {
		r.told(1)
		_ = r.cmd.Process.Kill()
	})
	code, _, errs := r.on(r.bed.Host(1), "stop", run.ID)
	killing.Wait()
	<-r.exited
	if code != 75 || !strings.Contains(errs, "does not hold the lock on the run's directory any more") || !strings.Contains(errs, "hint: if it is gone, gangrun stop --force "+run.ID) {
		t.Errorf("gangrun stop ended with %d: %s", code, errs)
	}
	r.ranksLeft(true)

	// From h1, no host can be reached, not even h1 itself. gangrun stop must then change nothing.
	before, err := run.Summary()
	if err != nil {
		t.Fatal(err)
	}
	code, _, errs = r.on(r.bed.Host(1), "stop", "--now", "--force", run.ID)
	if code != 75 || !strings.Contains(errs, "cannot be ended from here: none of the hosts that may have ranks of it can be reached: ") || !strings.Contains(errs, "hint: type gangrun stop "+run.ID+" where the run was started; ") {
		t.Errorf("gangrun stop --force ended with %d: %s", code, errs)
	}
	if after, err := run.Summary(); err != nil || *after.Controller != *before.Controller || after.State != before.State {
		t.Errorf("the run was %+v, and is %+v, %v", before, after, err)
	}
	r.ranksLeft(true)

	code, out, errs := r.elsewhere("stop", "--now", "--force", run.ID)
	r.stopped(code, out, errs, "cancelled by gangrun stop --now (root on elsewhere) while the gang was up")
	r.noRequest()
}

// TestAttachNotLetIn checks that gangrun attach changes nothing if it cannot log in to any host with ranks of the run.
// Later, gangrun attach must take over the same ranks from where it can log in.
func TestAttachNotLetIn(t *testing.T) {
	t.Parallel()
	r := startShared(t, "echo >ready.$RANK; until test -e end; do sleep 0.01; done", "--orphan-grace", "1h")
	r.made("ready.0", "ready.1")
	r.killController(r.cmd)
	<-r.exited
	run := r.shared()
	records := func() string {
		t.Helper()
		text, err := os.ReadFile(run.JournalPath())
		s, summed := run.Summary()
		if err != nil || summed != nil || s.Controller == nil {
			t.Fatalf("%v, %v, the run is %+v", err, summed, s)
		}
		return fmt.Sprintf("%+v, %s, %s", *s.Controller, s.State, text)
	}
	before, key := records(), r.bed.Controller().Key("id_ed25519")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	refused := func(code int, out, errs string) {
		t.Helper()
		if code != 75 || out != "" || !strings.Contains(errs, "error: run "+run.ID+", whose controller is gone, cannot be gone on with from here: none of the hosts that may have ranks of it can be reached: ") ||
			!strings.Contains(errs, " was refused") || !strings.Contains(errs, "hint: gangrun attach "+run.ID+" goes on with it where its hosts are reached: its ranks there end 1h0m0s after ") {
			t.Errorf("gangrun attach ended with %d: %s%s", code, out, errs)
		}
	}
	refused(r.ask(r.gangrun, "attach"))
	refused(r.ask(r.gangrun, "attach", "-o", "json", run.ID))
	refused(r.ask(r.gangrun, "attach", "--detach", run.ID))
	refused(r.elsewhere("attach", "--force", run.ID))
	if after := records(); after != before {
		t.Errorf("the records were\n%s\nand are\n%s", before, after)
	}
	r.ranksLeft(true)

	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	r.letGo()
	code, _, errs := r.ask(r.gangrun, "attach")
	events, _, err := journal.Replay(run.JournalPath())
	if report := runreport.Fold(events); code != 0 || err != nil || report.State != job.StateSucceeded || len(report.Attempts) != 1 {
		t.Errorf("gangrun attach ended with %d, the run is %s after %d attempts, %v: %s", code, report.State, len(report.Attempts), err, errs)
	}
}

// elsewhere runs gangrun on the controller's machine under another host name. The other hosts can be reached from
// there.
func (r *farRun) elsewhere(args ...string) (code int, out, errs string) {
	r.t.Helper()
	return r.ask(append([]string{"unshare", "--uts", "sh", "-c", `hostname elsewhere; exec "$0" "$@"`, r.gangrun}, args...)...)
}

// TestAttachElsewhereDoubts follows a run from a host on which its controller is not. When the controller dies,
// gangrun attach must say which commands the user can type.
func TestAttachElsewhereDoubts(t *testing.T) {
	t.Parallel()
	r := startShared(t, deafRanks, "--orphan-grace", "1h")
	r.made("ready.0", "ready.1")
	run := r.shared()
	r.killController(r.cmd)
	<-r.exited
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd, err := r.bed.Host(1).Command(ctx, r.gangrun, "attach", run.ID)
	if err != nil {
		t.Fatal(err)
	}
	var errs lockedBuffer
	cmd.Stderr, cmd.WaitDelay = &errs, patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	want := "does not hold the lock on the run's directory any more, as far as can be seen from here; if it is gone, gangrun attach --force " + run.ID + " goes on with the run, and gangrun stop --force " + run.ID + " ends it"
	for end := time.Now().Add(patience); strings.Count(errs.String(), want) < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("gangrun attach said %q", errs.String())
			break
		}
	}
	code, out, said := r.ask(r.gangrun, "stop", "--now", run.ID)
	r.stopped(code, out, said, "gangrun stop --now (root on ")
	defer time.AfterFunc(farPatience, cancel).Stop()
	_ = cmd.Wait() // its exit code does not matter
}

// TestAttachTellsUnreached checks that gangrun attach says at once which hosts of the run it cannot reach, although it
// places no ranks.
func TestAttachTellsUnreached(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 3)
	if err := bed.Host(3).StopSSH(); err != nil {
		t.Fatal(err)
	}
	r := startFarCommand(t, bed, "h1:1,h2:1,h3:1", 2, job.MPINone, []string{"sh", "-c", "echo up; until test -e end; do sleep 0.01; done"})
	r.lines(2, 1)
	r.journalled(job.KindAllStarted, 1)
	r.killController(r.cmd)
	<-r.exited
	notes := func() (n int) {
		for _, e := range r.events() {
			if e.Kind == job.KindNote && strings.HasPrefix(e.Text, `not reached, and left out: host "h3" `) {
				n++
			}
		}
		return n
	}
	before := notes()
	a := r.attach()
	for end := time.Now().Add(patience); notes() != before+1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("it was told %d times, and %d times before", notes(), before)
			break
		}
	}
	r.letGo()
	if code := a.finish(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if report := r.report(); len(report.Attempts) != 1 || notes() != before+1 {
		t.Errorf("%d attempts, told %d times", len(report.Attempts), notes()-before)
	}
}

// TestFullHome checks the exit code if gangrun's home is full when a run begins. It must say that a later try may
// succeed.
func TestFullHome(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 1)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	said, err := bed.Controller().Exec(ctx, "sh", "-c", `
		mkdir -p "$1/small" && mount -t tmpfs -o size=64k full "$1/small" || exit 1
		mkdir -p "$1/small/g/runs"; cat /dev/zero >"$1/small/fill" 2>/dev/null
		GANGRUN_HOME=$1/small/g "$0" run -n 1 -- true 2>&1; echo "code $?"
		umount "$1/small"`, gangrun, bed.Shared())
	if err != nil || !strings.Contains(said, "no space left on device") || !strings.Contains(said, "hint: make room") || !strings.HasSuffix(said, "code 75\n") {
		t.Errorf("%v: %s", err, said)
	}
}
