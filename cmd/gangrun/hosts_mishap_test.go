package main_test

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// mishapTimeout and mishapGrace are the host timeout and the orphan grace of the runs with mishaps. A disturbance that
// is shorter than shortly must not end an attempt.
const (
	mishapTimeout = 6 * time.Second
	mishapGrace   = 5 * time.Second
	shortly       = 2 * time.Second
)

// mishap is something that happens to a host while a gang runs.
type mishap struct {
	name string
	do   func(*tally, *testhosts.Host) error
	// undo ends the mishap when the run is over. Nothing else happens to the host before that.
	undo func(*testhosts.Host) error
	// cause is the cause with which an attempt may fail because of the mishap. It is "" if the attempt must go on. If
	// anywhere is true, the cause may name any host.
	cause    job.Category
	anywhere bool
	// controller is true if the controller dies.
	controller bool
	loses      bool // output of ranks on the host may be lost
	frozen     bool // ranks run for a moment when the host is thawed, even if that is late
}

// meanwhile returns a mishap that calls do and, after a random time, undo.
func meanwhile(do, undo func(*testhosts.Host) error, least, most time.Duration) func(*tally, *testhosts.Host) error {
	return func(r *tally, h *testhosts.Host) error {
		err := do(h)
		r.sleep(least, most)
		return errors.Join(err, undo(h))
	}
}

// once returns a mishap that calls do.
func once(do func(*testhosts.Host) error) func(*tally, *testhosts.Host) error {
	return func(_ *tally, h *testhosts.Host) error { return do(h) }
}

// kill returns a mishap that kills a random process of the host for which wanted returns true.
func kill(wanted func(testhosts.Process) bool) func(*tally, *testhosts.Host) error {
	return func(r *tally, h *testhosts.Host) error {
		all, err := h.Processes("")
		all = slices.DeleteFunc(all, func(p testhosts.Process) bool { return !wanted(p) })
		if err != nil || len(all) == 0 {
			return errors.Join(err, errMissed)
		}
		err = syscall.Kill(all[r.random.IntN(len(all))].PID, syscall.SIGKILL)
		if err == syscall.ESRCH {
			return errMissed // the process has just ended
		}
		return err
	}
}

// killController returns a mishap that kills the controller, and starts gangrun attach after a random time.
func killController(least, most time.Duration) func(*tally, *testhosts.Host) error {
	return func(r *tally, _ *testhosts.Host) error {
		if err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return err
		}
		<-r.exited
		if r.cmd.ProcessState.Exited() {
			return errMissed // the run was already over
		}
		r.sleep(least, most)
		r.control("attach")
		return nil
	}
}

// fill is a mishap that fills /tmp for a while. It does nothing if /tmp is read-only.
func fill(r *tally, h *testhosts.Host) error {
	if h == r.readOnly {
		return errMissed
	}
	return meanwhile(func(h *testhosts.Host) error { return h.Fill("/tmp") }, func(h *testhosts.Host) error { return h.Drain("/tmp") }, 0, 2*shortly)(r, h)
}

// errMissed is returned by a mishap if what it should happen to does not exist.
var errMissed = errors.New("there was nothing to happen to")

const long = 16 * time.Second // the longest time from the loss of a host until the next attempt has begun

var mishaps = []mishap{
	{name: "cut for a while", do: meanwhile((*testhosts.Host).Cut, (*testhosts.Host).Restore, 0, shortly)},
	{name: "cut for good", do: once((*testhosts.Host).Cut), undo: (*testhosts.Host).Restore, cause: job.HostLost, loses: true},
	{name: "power lost, then booted", do: meanwhile((*testhosts.Host).Poweroff, (*testhosts.Host).Boot, 0, long), cause: job.HostLost, loses: true},
	{name: "host killed, then booted", do: meanwhile((*testhosts.Host).Kill, (*testhosts.Host).Boot, 0, long), cause: job.HostLost, loses: true},
	{name: "frozen for a while", do: meanwhile((*testhosts.Host).Freeze, (*testhosts.Host).Thaw, 0, shortly)},
	{name: "frozen for long", do: meanwhile((*testhosts.Host).Freeze, (*testhosts.Host).Thaw, shortly, long), cause: job.HostLost, loses: true, frozen: true},
	{name: "sshd restarted", do: meanwhile((*testhosts.Host).StopSSH, (*testhosts.Host).StartSSH, 0, shortly)},
	{name: "sshd stopped", do: once((*testhosts.Host).StopSSH), undo: (*testhosts.Host).StartSSH, cause: job.HostLost, loses: true},
	{name: "bridge killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) > 2 && p.Args[1] == "bridge" })},
	{name: "agent killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) == 4 && p.Args[3] == "worker" }), cause: job.HostLost, loses: true},
	{name: "watchdog killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) == 4 && p.Args[3] == "watchdog" }), cause: job.HostLost, loses: true},
	{name: "rank killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) > 1 && filepath.Base(p.Args[1]) == "tally.py" }), cause: job.Killed},
	{name: "controller killed, attach", do: killController(0, shortly), controller: true},
	{name: "controller killed, attach after the grace", do: killController(mishapGrace+shortly, mishapGrace+3*shortly), cause: job.HostLost, anywhere: true, controller: true, loses: true},
	{name: "20 % packet loss", do: once(func(h *testhosts.Host) error { return h.Loss(20) }), undo: func(h *testhosts.Host) error { return h.Loss(0) }},
	{name: "10 mbit/s line", do: once(func(h *testhosts.Host) error { return h.Rate("10mbit") }), undo: func(h *testhosts.Host) error { return h.Rate("") }},
	{name: "disk full, then not", do: fill, cause: job.DiskFull, loses: true},
}

// stroke is a mishap that has happened.
type stroke struct {
	mishap
	host     string
	at, over time.Time
	clock    float64 // the times at and over, by the clock of the stamps of ranks
	overAt   float64
}
