package main_test

import (
	"bytes"
	"context"
	"errors"
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

// hostFault is one thing that happens to h2, one of four hosts of a gang, and what
// comes of it.
type hostFault struct {
	name string
	// before makes the fault before the run; while once the gang is running, which
	// returns when it was made.
	before func(*testhosts.Bed) error
	while  func(*farRun) (time.Time, error)
	// after takes the fault away once the run has ended, so that what is left can
	// be looked at.
	after func(*testhosts.Bed) error
	hosts string // that the run is given; "" is h1:2,h2:2,h3:2,h4:2

	torch     bool // it is tried with torch, too
	goesOn    bool // the gang does not fail of it
	code      int
	cause     job.Category // "" where there is no attempt that could fail, or it goes on
	signature string
	text      string // that the cause, or what is said of the run, must hold
	suspect   bool   // h2 is told to be suspect
	// known is within what time after it has happened the fault must be known; 0 is
	// not asked.
	known time.Duration
	// next is set if gangrun cannot remove the container: the next job in an image does.
	next bool
}

// farLimits are how long a host may be silent, and ranks without a controller, in a run
// that fails of it and in one that goes on.
type farLimits struct{ timeout, grace, onTimeout, onGrace time.Duration }

var (
	// measured are those of runs whose times are told.
	measured = farLimits{farTimeout, farGrace, time.Duration(job.DefaultHostTimeout), time.Duration(job.DefaultOrphanGrace)}
	// patiently are those of runs on a machine that may stand still for a while.
	patiently = farLimits{patience, 10 * time.Second, patience, patience}
)

// Limits of the runs on hosts that fail. The least of silence after which a host is
// suspect is not the user's to set: 3 s.
const (
	farTimeout = 6 * time.Second
	farGrace   = 4 * time.Second
	// farSteps is how many the ranks take where the job is to go on.
	farSteps   = 100
	farSuspect = 4 * time.Second
)

// victim is the host that it happens to.
func victim(b *testhosts.Bed) *testhosts.Host { return b.Host(2) }

// to makes a fault of something that is done to the victim.
func to(do func(*testhosts.Host) error) func(*farRun) (time.Time, error) {
	return func(r *farRun) (time.Time, error) { at := time.Now(); return at, do(victim(r.bed)) }
}

// from is to before the run.
func from(do func(*testhosts.Host) error) func(*testhosts.Bed) error {
	return func(b *testhosts.Bed) error { return do(victim(b)) }
}

// killAgent kills the victim's agent, whose watchdog outlives it.
func killAgent(h *testhosts.Host) error {
	all, err := h.Processes("")
	for _, p := range all {
		if err == nil && len(p.Args) == 4 && p.Args[0] != innerProgram && p.Args[1] == "agent" && p.Args[3] == "worker" {
			return syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	return errors.Join(err, fmt.Errorf("no agent among %v", all))
}

// suspected is that the victim has gone silent.
func suspected(e job.Event) bool { return e.Kind == job.KindSuspect && e.Host == "h2" }

var hostFaults = []hostFault{{
	name: "cut for 5 s", torch: true, goesOn: true, suspect: true,
	while: func(r *farRun) (time.Time, error) {
		at := time.Now()
		err := victim(r.bed).Cut()
		time.Sleep(5 * time.Second) // that is the fault
		r.await("that h2 is suspect", func() bool { return r.since(at, suspected) >= 0 })
		return at, errors.Join(err, victim(r.bed).Restore())
	},
}, {
	name: "cut for good", while: to((*testhosts.Host).Cut), after: from((*testhosts.Host).Restore),
	code: 75, cause: job.HostLost, signature: "host-silent", text: "h2", suspect: true, known: farTimeout + 2*time.Second,
}, {
	name: "power lost", while: to((*testhosts.Host).Poweroff),
	code: 75, cause: job.HostLost, signature: "host-silent", text: "h2", suspect: true, known: farTimeout + 2*time.Second,
}, {
	name: "host killed", torch: true, while: to((*testhosts.Host).Kill),
	code: 75, cause: job.HostLost, signature: "host-gone", text: "h2", known: time.Second,
}, {
	name: "frozen", torch: true, while: to((*testhosts.Host).Freeze), after: from((*testhosts.Host).Thaw),
	code: 75, cause: job.HostLost, signature: "host-silent", text: "h2", suspect: true, known: farTimeout + 2*time.Second,
}, {
	name: "sshd killed", while: to((*testhosts.Host).StopSSH), after: from((*testhosts.Host).StartSSH),
	code: 75, cause: job.HostLost, signature: "host-silent", text: "connection refused", suspect: true, known: farTimeout + 2*time.Second,
}, {
	name: "sshd restarted", goesOn: true,
	while: func(r *farRun) (time.Time, error) {
		at := time.Now()
		err := victim(r.bed).StopSSH() // with all of its sessions
		time.Sleep(2 * time.Second)    // that is the fault
		return at, errors.Join(err, victim(r.bed).StartSSH())
	},
}, {
	name: "agent killed", torch: true, while: to(killAgent),
	code: 75, cause: job.HostLost, signature: "agent-gone", text: "h2", known: time.Second,
}, {
	name: "controller killed", code: 128 + int(syscall.SIGKILL),
	while: func(r *farRun) (time.Time, error) {
		at := time.Now()
		return at, syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL)
	},
}, {
	name: "controller killed, then gangrun attach", goesOn: true,
	while: func(r *farRun) (time.Time, error) {
		at := time.Now()
		err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.exited
		r.control("attach")
		return at, err
	},
}, {
	name: "disk full", before: from(func(h *testhosts.Host) error { return h.Fill("/tmp") }), after: from(func(h *testhosts.Host) error { return h.Drain("/tmp") }),
	code: 1, cause: job.DiskFull, signature: "no-space", text: "h2",
}, {
	name: "/tmp not writable", before: from(func(h *testhosts.Host) error { return h.Remount("/tmp", "ro") }), goesOn: true,
}, {
	name: "clock two minutes ahead", goesOn: true,
	before: from(func(h *testhosts.Host) error {
		_, err := h.Exec(context.Background(), "sh", "-c", "echo export GANGRUN_TEST_CLOCK=2m >> /root/.bashrc")
		return err
	}),
}, {
	name:   "wrong host key",
	before: func(b *testhosts.Bed) error { return b.Controller().Know(victim(b), testhosts.WrongKey) },
	code:   69, text: "is not the one known for",
}, {
	name: "wrong user", hosts: "h1:2,bob@h2:2,h3:2,h4:2", code: 69, text: `the login of user "bob" was refused`,
}, {
	name: "port refused", before: from((*testhosts.Host).StopSSH), code: 69, text: "connection refused",
}, {
	name: "absent address", hosts: "h1:2,ABSENT:2,h3:2,h4:2", code: 69, text: "cannot be reached",
}, {
	name: "20 % packet loss", while: to(func(h *testhosts.Host) error { return h.Loss(20) }), after: from(func(h *testhosts.Host) error { return h.Loss(0) }), goesOn: true,
}, {
	name: "10 mbit/s line", while: to(func(h *testhosts.Host) error { return h.Rate("10mbit") }), goesOn: true,
}}

// hostCell is one line of the table: what came of a fault.
type hostCell struct {
	fault          string
	program        string
	what           string // the cause, or that the job goes on
	code           int
	suspect, known time.Duration // -1 where it never was
	ended          time.Duration // from the fault to gangrun's end
	gone           time.Duration // from gangrun's end to that of everything else
	seen           []string
}

// try has a fault happen to a gang and checks what comes of it.
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

// check looks at what gangrun has told and left.
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
		for _, e := range r.events() { // in this machine's time
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

// TestPartitionedHost cuts a host off that still reaches the directory that all
// hosts share: what the next attempt writes there comes after all that the lost
// ranks have written. When the host is back, it hands out what they have printed.
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

// faultsPath is the document that the soak test writes.
const faultsPath = "../../docs/faults.md"

// row is the line of the document's table, up to what varies.
func (c hostCell) row() string {
	return fmt.Sprintf("| %s | %s | %s | %d |", c.fault, c.program, c.what, c.code)
}

// TestHostFaults tries a fault of each kind, and holds the document against what
// comes of them. Silent ones take TestPartitionedHost's time.
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
