package main_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
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
