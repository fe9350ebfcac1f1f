package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// startAttachable starts a gang on two hosts whose ranks do not end before letGo. It waits until the gang runs, and
// kills the controller.
func startAttachable(t *testing.T, program farProgram, ranks, steps int, flags ...string) *farRun {
	t.Helper()
	bed := testhosts.Up(t, 2)
	hosts := fmt.Sprintf("h1:%[1]d,h2:%[1]d", ranks/2)
	r := startFarCommand(t, bed, hosts, ranks, program.mpi, heldBack(bed, program.command(t, bed, steps)),
		append(flags, "--retries", "0", "--host-timeout", patience.String(), "--orphan-grace", farPatience.String())...)
	r.steps = steps
	r.lines(ranks, 10)
	r.journalled(job.KindAllStarted, 1)
	r.killController(r.cmd)
	<-r.exited
	return r
}

// lines waits until every rank has printed at least so many lines.
func (r *farRun) lines(ranks, lines int) {
	r.t.Helper()
	limit := time.After(farPatience)
	for rank := 0; rank < ranks; {
		if bytes.Count(r.log(rank, "out"), []byte{'\n'}) >= lines {
			rank++
			continue
		}
		select {
		case <-limit:
			r.t.Fatalf("rank %d has not printed %d lines within %s", rank, lines, farPatience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// killController kills a gangrun with SIGKILL. It does not wait for the end of the process.
func (r *farRun) killController(cmd *exec.Cmd) {
	r.t.Helper()
	if err := syscall.Kill(cmd.Process.Pid, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

// attached is a running gangrun attach.
type attached struct {
	cmd       *exec.Cmd
	out, errs lockedBuffer
	exited    chan struct{}
}

// attach starts gangrun attach on the controller's machine.
func (r *farRun) attach(args ...string) *attached {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := &attached{exited: make(chan struct{})}
	a.cmd = r.bed.Controller().Command(ctx, append([]string{r.gangrun, "attach"}, args...)...)
	a.cmd.Dir = r.bed.Shared()
	a.cmd.Stdout, a.cmd.Stderr, a.cmd.WaitDelay = &a.out, &a.errs, patience
	if err := a.cmd.Start(); err != nil {
		cancel()
		r.t.Fatal(err)
	}
	go func() {
		defer close(a.exited)
		_ = a.cmd.Wait() // the exit code is in ProcessState
	}()
	r.t.Cleanup(func() {
		cancel()
		<-a.exited
		if r.t.Failed() {
			r.t.Logf("gangrun attach said:\n%s", a.errs.String())
		}
	})
	return a
}

// finish waits for the end of gangrun attach and returns its exit code.
func (a *attached) finish(t *testing.T) int {
	t.Helper()
	select {
	case <-a.exited:
	case <-time.After(farPatience):
		t.Fatal("gangrun attach does not end")
	}
	return a.cmd.ProcessState.ExitCode()
}

// count returns the number of events of a kind in the journal.
func (r *farRun) count(kind job.Kind) (n int) {
	for _, e := range r.events() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// comes waits until done returns true. Meanwhile the run may get another controller.
func (r *farRun) comes(what string, done func() bool) {
	r.t.Helper()
	for limit := time.Now().Add(farPatience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			r.t.Fatalf("%s: not within %s", what, farPatience)
		}
	}
}

// journalled waits until the journal has n events of a kind.
func (r *farRun) journalled(kind job.Kind, n int) {
	r.t.Helper()
	r.comes(fmt.Sprintf("%d events of kind %s in the journal", n, kind), func() bool { return r.count(kind) >= n })
}

// untouched checks that the run had one attempt, and that the journal has one exit of every rank. The logs must have
// every byte once.
func (r *farRun) untouched(ranks int) {
	r.t.Helper()
	report := r.report()
	if report.State != job.StateSucceeded || len(report.Attempts) != 1 {
		r.t.Errorf("%s after %d attempts: %s", report.State, len(report.Attempts), report.Reason)
	}
	for kind, want := range map[job.Kind]int{
		job.KindCreated: 1, job.KindAttempt: 1, job.KindAllStarted: 1, job.KindOutcome: 1, job.KindVerdict: 1, job.KindEnded: 1, job.KindStop: 0,
		job.KindStarted: ranks, job.KindExit: ranks,
	} {
		if n := r.count(kind); n != want {
			r.t.Errorf("the journal has %d events of kind %s, want %d", n, kind, want)
		}
	}
	for rank := range ranks {
		var out, errs strings.Builder
		for i := 1; i <= r.steps; i++ {
			fmt.Fprintf(&out, "rank %d of %d: step %d/%d\n", rank, ranks, i, r.steps)
			fmt.Fprintf(&errs, "rank %d of %d: note %d\n", rank, ranks, i)
		}
		if string(r.log(rank, "out")) != out.String() || string(r.log(rank, "err")) != errs.String() {
			r.t.Errorf("the logs of rank %d are not what it has printed", rank)
		}
	}
}

// TestAttachAfterKill checks that a gang survives when its controller is killed twice. No output of the ranks may be
// lost or doubled.
func TestAttachAfterKill(t *testing.T) {
	t.Parallel()
	for _, program := range farPrograms {
		t.Run(program.name, func(t *testing.T) {
			t.Parallel()
			ranks := 4
			if program.mpi == job.MPIMPICH {
				ranks = 2 // with more ranks, MPI_Finalize of MPICH sometimes hangs, whoever has started the ranks
			}
			r := startAttachable(t, program, ranks, 60)
			first := r.attach()
			r.journalled(job.KindAttached, 1)
			if told, err := r.bed.Controller().Exec(context.Background(), r.gangrun, "ps"); err != nil || !strings.Contains(told, "running") {
				t.Errorf("gangrun ps says %q, %v", told, err)
			}
			r.lines(ranks, 40)
			r.killController(first.cmd)
			first.finish(t)
			second := r.attach()
			r.journalled(job.KindAttached, 2)
			r.letGo()
			if code := second.finish(t); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			r.untouched(ranks)
			r.nothingLeft()
			if n := r.count(job.KindAttached); n != 2 {
				t.Errorf("the run was taken over %d times", n)
			}
		})
	}
}

// TestAttachTwice starts gangrun attach twice at the same time. One of the two must take the run over, and the other
// must follow it.
func TestAttachTwice(t *testing.T) {
	t.Parallel()
	r := startAttachable(t, farPrograms[0], 4, 30)
	one, other := r.attach(), r.attach()
	r.comes("that one goes on and the other looks on", func() bool {
		said := one.errs.String() + other.errs.String()
		return strings.Contains(said, "goes on under this process") && strings.Contains(said, "attempt 1 is on its way; ")
	})
	r.letGo()
	if a, b := one.finish(t), other.finish(t); a != 0 || b != 0 {
		t.Fatalf("exit codes %d and %d", a, b)
	}
	r.untouched(4)
	r.nothingLeft()
	if n := r.count(job.KindAttached); n != 1 {
		t.Errorf("the run was taken over %d times", n)
	}
	if said := one.errs.String() + other.errs.String(); strings.Count(said, "goes on under this process") != 1 || strings.Count(said, "exit code") != 2 {
		t.Errorf("they said:\n%s", said)
	}
}

// TestAttachAfterGrace checks that gangrun attach starts the gang again if it comes after the agents have ended the
// ranks.
func TestAttachAfterGrace(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	endless := `while [ $GANGRUN_ATTEMPT = 1 ]; do echo here; sleep 0.1; done`
	r := startFarCommand(t, bed, "h1:2,h2:2", 4, job.MPINone, []string{"sh", "-c", endless}, "--retries", "1", "--orphan-grace", "8s")
	r.lines(4, 1)
	r.killController(r.cmd)
	r.nothingLeft()
	second := r.attach()
	if code := second.finish(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, host := range []string{"h1", "h2"} { // the ranks went on printing while they had no controller
		if said := second.errs.String(); !strings.Contains(said, "bytes that its ranks had printed have been fetched from "+host+", and nothing of it is missing") {
			t.Errorf("it did not say that the output has come from %s:\n%s", host, said)
		}
	}
	report := r.report()
	if len(report.Attempts) != 2 || report.State != job.StateSucceeded {
		t.Fatalf("%s after %d attempts", report.State, len(report.Attempts))
	}
	if c := report.Attempts[0].Cause; c == nil || c.Category != job.HostLost || c.Signature != "controller-gone" || !strings.Contains(c.Text, "h1, h2") {
		t.Errorf("the first attempt died of %+v", c)
	}
	r.nothingLeft()
}

// noRanks waits until no rank is left on any host.
func (r *farRun) noRanks() {
	r.t.Helper()
	for _, h := range r.bed.Hosts() {
		r.comes("no rank on "+h.Name(), func() bool {
			ranks, err := h.Processes("GANGRUN_RANK=")
			if err != nil {
				r.t.Fatal(err)
			}
			return len(ranks) == 0
		})
	}
}

// TestAttachEndedMeanwhile checks that a gang succeeds if all its ranks have ended with code 0 while it had no
// controller.
func TestAttachEndedMeanwhile(t *testing.T) {
	t.Parallel()
	r := startAttachable(t, farPrograms[0], 4, 30)
	r.letGo()
	r.noRanks()
	if code := r.attach("--detach").finish(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if code := r.attach().finish(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.untouched(4)
	r.nothingLeft()
}
