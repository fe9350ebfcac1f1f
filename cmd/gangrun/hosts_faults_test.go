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

// hostFault is a fault on h2, one of the four hosts of a gang, and its consequences.
type hostFault struct {
	name string
	// before makes the fault before the run. while makes it when the gang is running, and returns the time at which it
	// did so.
	before func(*testhosts.Bed) error
	while  func(*farRun) (time.Time, error)
	// after removes the fault when the run has ended, so that the test can look for leftovers.
	after func(*testhosts.Bed) error
	hosts string // the value of --hosts; "" means h1:2,h2:2,h3:2,h4:2

	torch     bool // whether it is also tried with torch
	goesOn    bool // whether the gang goes on
	code      int
	cause     job.Category // "" if no attempt fails
	signature string
	text      string // a text that the cause must have or, without an attempt, the reason of the run
	suspect   bool   // whether gangrun reports h2 as suspect
	// known limits the time until gangrun knows of the fault; 0 means no limit.
	known time.Duration
	// next is set if gangrun cannot remove the container. The next job in an image then removes it.
	next bool
}

// victim returns the host on which the faults happen.
func victim(b *testhosts.Bed) *testhosts.Host { return b.Host(2) }

// to returns a value for hostFault.while that calls do with the victim.
func to(do func(*testhosts.Host) error) func(*farRun) (time.Time, error) {
	return func(r *farRun) (time.Time, error) { at := time.Now(); return at, do(victim(r.bed)) }
}

// from returns a value for hostFault.before or hostFault.after that calls do with the victim.
func from(do func(*testhosts.Host) error) func(*testhosts.Bed) error {
	return func(b *testhosts.Bed) error { return do(victim(b)) }
}

// killAgent kills the agent of a host. The watchdog of the agent survives.
func killAgent(h *testhosts.Host) error {
	all, err := h.Processes("")
	for _, p := range all {
		if err == nil && len(p.Args) == 4 && p.Args[0] != innerProgram && p.Args[1] == "agent" && p.Args[3] == "worker" {
			return syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	return errors.Join(err, fmt.Errorf("no agent among %v", all))
}

// suspected reports whether an event says that the victim is silent.
func suspected(e job.Event) bool { return e.Kind == job.KindSuspect && e.Host == "h2" }

var hostFaults = []hostFault{{
	name: "cut for 5 s", torch: true, goesOn: true, suspect: true,
	while: func(r *farRun) (time.Time, error) {
		at := time.Now()
		err := victim(r.bed).Cut()
		time.Sleep(5 * time.Second) // the length of the fault
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
		err := victim(r.bed).StopSSH() // ends all SSH sessions, too
		time.Sleep(2 * time.Second)    // the length of the fault
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
