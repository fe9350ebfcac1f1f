package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// farLimits has the host timeout and the orphan grace of a run. timeout and grace are for runs that fail because of
// the fault, onTimeout and onGrace for runs that go on.
type farLimits struct{ timeout, grace, onTimeout, onGrace time.Duration }

var (
	// measured has the limits of runs whose times are in the document.
	measured = farLimits{farTimeout, farGrace, time.Duration(job.DefaultHostTimeout), time.Duration(job.DefaultOrphanGrace)}
	// patiently has the limits of runs on a machine that may be very slow for a while.
	patiently = farLimits{2 * time.Minute, 10 * time.Second, 2 * time.Minute, 2 * time.Minute}
)

// Limits of the runs with faults on hosts. A host is suspect after a silence of 3 s at least; users cannot change
// that.
const (
	farTimeout = 6 * time.Second
	farGrace   = 4 * time.Second
	// farSteps is how many steps the ranks make if the job is to go on.
	farSteps   = 100
	farSuspect = 4 * time.Second
)

// hostCell is a row of the table in the document: the consequences of a fault.
type hostCell struct {
	fault          string
	program        string
	what           string // the cause, or that the job goes on
	code           int
	suspect, known time.Duration // time from the fault; -1 if it never happened
	ended          time.Duration // time from the fault to the end of gangrun
	gone           time.Duration // time from the end of gangrun until nothing of the run is left
	seen           []string
}

// try runs a gang, makes the fault happen, and checks the consequences.
func (f hostFault) try(t *testing.T, program farProgram, limits farLimits) hostCell {
	var options []testhosts.Option
	if program.image {
		options = append(options, testhosts.Containerd())
	}
	bed := testhosts.Up(t, farHosts, options...)
	c := hostCell{fault: f.name, program: program.name, suspect: -1, known: -1}
	if f.before != nil {
		if err := f.before(bed); err != nil {
			t.Fatal(err)
		}
	}
	hosts := strings.ReplaceAll(f.hosts, "ABSENT", bed.Absent().String())
	if hosts == "" {
		hosts = "h1:2,h2:2,h3:2,h4:2"
	}
	steps, timeout, grace := 100_000, limits.timeout, limits.grace
	if f.goesOn {
		steps, timeout, grace = farSteps, limits.onTimeout, limits.onGrace
	}
	r := startFar(t, bed, hosts, program, steps, "--retries", "0", "--host-timeout", timeout.String(), "--orphan-grace", grace.String())
	at := r.begun
	if f.while != nil {
		r.running(5)
		var err error
		if at, err = f.while(r); err != nil {
			t.Fatal(err)
		}
	}
	r.letGo()
	c.code = r.finish()
	c.ended = r.ended.Sub(at)
	if f.after != nil {
		if err := f.after(bed); err != nil {
			t.Fatal(err)
		}
	}
	c.gone = r.nothingLeft()
	c.seen = r.seen()
	f.check(r, &c, at)
	if f.next {
		args := append([]string{r.gangrun, "run", "--hosts", "h2", "--preflight", "off", "--mpi", "none"}, imageFlags(t, bed)...)
		if out, err := bed.Controller().Exec(t.Context(), append(args, "--", "true")...); err != nil {
			t.Errorf("the next job: %v\n%s", err, out)
		}
	}
	if program.image && c.code != 128+int(syscall.SIGKILL) {
		noContainers(t, bed)
	}
	return c
}

// check checks what gangrun has reported, and fills c.
func (f hostFault) check(r *farRun, c *hostCell, at time.Time) {
	t := r.t
	if c.code != f.code {
		t.Errorf("exit code %d, want %d", c.code, f.code)
	}
	if f.cause != "" || f.goesOn || c.code == 128+int(syscall.SIGKILL) {
		r.whole(f.goesOn)
	}
	c.suspect = r.since(at, suspected)
	c.known = r.since(at, func(e job.Event) bool {
		return e.Kind == job.KindExit && e.Exit.Status == job.Lost || f.cause != job.HostLost && e.Kind == job.KindStop
	})
	if f.suspect && c.suspect < 0 {
		t.Error("h2 was never suspect")
	}
	switch {
	case f.goesOn:
		c.what, c.known = "the job goes on", -1
		for _, e := range r.events() { // checks that all times are by the clock of this machine
			if e.Time.Before(r.begun.Add(-time.Minute)) || e.Time.After(r.ended.Add(time.Minute)) {
				t.Errorf("an event at %s of a run from %s to %s: %+v", e.Time, r.begun, r.ended, e)
			}
		}
	case f.name == "controller killed":
		c.what = "the run is lost"
		told, err := r.bed.Controller().Exec(context.Background(), r.gangrun, "status")
		first, _, _ := strings.Cut(told, "\n")
		if err != nil || !strings.HasSuffix(first, " lost") {
			t.Errorf("gangrun status says %q, %v", told, err)
		}
		c.seen = []string{"$ gangrun status", plain(first)}
		return
	case f.cause == "":
		c.what, c.known = "no place", c.ended
		if report := r.report(); report.State != job.StateNoPlacement || !strings.Contains(report.Reason, f.text) || report.Hint == "" {
			t.Errorf("state %s, %q, hint %q, want %q", report.State, report.Reason, report.Hint, f.text)
		}
		return
	default:
		attempt := r.report().Last()
		if attempt == nil || attempt.Cause == nil {
			t.Fatal("the report has no cause")
		}
		cause := attempt.Cause
		c.what = fmt.Sprintf("`%s` (%s)", cause.Category, cause.Signature)
		if cause.Category != f.cause || cause.Signature != f.signature || cause.Host != "h2" || !strings.Contains(cause.Text, f.text) || cause.Hint == "" {
			t.Errorf("cause %s (%s) on %q: %s; hint %q; want %s (%s) on h2, and %q", cause.Category, cause.Signature, cause.Host, cause.Text, cause.Hint, f.cause, f.signature, f.text)
		}
	}
	if report := r.report(); report.ExitCode == nil || *report.ExitCode != c.code {
		t.Errorf("the report tells exit code %v, gangrun ended with %d", report.ExitCode, c.code)
	}
}

// TestPartitionedHost cuts a host off from the network. The host can still use the directory that all hosts share. The
// next attempt must not write there before the lost ranks have stopped writing. When the network works again, the host
// must deliver what its ranks have printed.
func TestPartitionedHost(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, farHosts)
	written := filepath.Join(bed.Shared(), "written")
	program := filepath.Join(bed.Shared(), "writer")
	script := fmt.Sprintf("#!/bin/sh\nwhile [ ! -e %s.end ]; do line=\"$GANGRUN_ATTEMPT $(hostname)\"; echo $line; echo $line >> %s; sleep 0.05; done\n", written, written)
	writeProgram(t, program, []byte(script))
	const timeout = 12 * time.Second
	r := startFarCommand(t, bed, "h1:2,h2:2,h3:2,h4:2", 6, job.MPINone, []string{program},
		"--retries", "1", "--host-timeout", timeout.String(), "--orphan-grace", (timeout + 2*time.Second).String())
	lines := func() []string {
		data, _ := os.ReadFile(written)
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	holds := func(line string) func() bool {
		return func() bool { return slices.Contains(lines(), line) }
	}
	if !r.await("the first attempt", holds("1 h2")) {
		t.Fatal("gangrun has ended")
	}
	if err := victim(bed).Cut(); err != nil {
		t.Fatal(err)
	}
	before := len(lines())
	if !r.await("the second attempt", holds("2 h4")) {
		t.Fatal("gangrun has ended")
	}
	if err := victim(bed).Restore(); err != nil {
		t.Fatal(err)
	}
	came := func(e job.Event) bool {
		return e.Host == "h2" && strings.Contains(e.Text, " more bytes that the ranks on h2 had printed in attempt 1 ")
	}
	if !r.await("what h2 has kept", func() bool { return slices.ContainsFunc(r.events(), came) }) {
		t.Fatal("gangrun has ended")
	}
	if err := os.WriteFile(written+".end", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := r.finish(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	all := lines()
	first := slices.IndexFunc(all, func(l string) bool { return strings.HasPrefix(l, "2 ") })
	last := first
	for i, l := range all {
		if strings.HasPrefix(l, "1 ") {
			last = i
		}
		if strings.HasPrefix(l, "2 h2") {
			t.Fatal("the second attempt runs on the lost host")
		}
	}
	if last > first {
		t.Errorf("attempt 1 has written line %d, attempt 2 line %d", last, first)
	}
	if !slices.Contains(all[before:first], "1 h2") {
		t.Error("the host that was cut off did not write: this tests nothing")
	}
	printed := bytes.Count(slices.Concat(r.log(2, "out"), r.log(3, "out")), []byte("1 h2\n"))
	if wrote := len(slices.DeleteFunc(slices.Clone(all), func(l string) bool { return l != "1 h2" })); printed < wrote || printed > wrote+2 {
		t.Errorf("the ranks on h2 have printed %d lines, and written %d", printed, wrote)
	}
	r.nothingLeft()
	if left, err := victim(bed).Exec(context.Background(), "find", "/tmp", "-path", "*/logs/*"); err != nil || left != "" {
		t.Errorf("left on h2: %s %v", left, err)
	}
	if lost := r.report().Attempts[0].Cause; lost == nil || lost.Signature != "host-silent" || lost.Host != "h2" {
		t.Errorf("the first attempt's cause is %+v", lost)
	}
}

// faultsPath is the document that TestSoakHostFaults writes.
const faultsPath = "../../docs/faults.md"

// row returns the beginning of the table row, up to the columns whose values vary.
func (c hostCell) row() string {
	return fmt.Sprintf("| %s | %s | %s | %d |", c.fault, c.program, c.what, c.code)
}

// TestHostFaults tries a fault of each kind, and compares the consequences with the document. TestPartitionedHost
// takes care of silent hosts, which takes long.
func TestHostFaults(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.FromSlash(faultsPath))
	if err != nil {
		t.Fatal(err)
	}
	for name, mpi := range map[string]job.MPI{
		"cut for 5 s": job.MPIOpenMPI, "host killed": job.MPIMPICH, "agent killed": job.MPIOpenMPI,
		"disk full": job.MPIMPICH, "wrong host key": job.MPINone, "controller killed": job.MPINone,
	} {
		for _, f := range hostFaults {
			if f.name != name {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				program := farPrograms[slices.IndexFunc(farPrograms, func(p farProgram) bool { return p.mpi == mpi })]
				if c := f.try(t, program, patiently); !strings.Contains(string(page), c.row()) {
					t.Errorf("%s does not say %q", faultsPath, c.row())
				}
			})
		}
	}
}
