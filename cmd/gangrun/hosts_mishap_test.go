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

// Limits of its runs, and how long what must end no attempt may take.
const (
	mishapTimeout = 6 * time.Second
	mishapGrace   = 5 * time.Second
	shortly       = 2 * time.Second
)

// mishap is something that happens to a host while a gang runs.
type mishap struct {
	name string
	do   func(*tally, *testhosts.Host) error
	// undo is done when the run is over; until then nothing else happens to the host.
	undo func(*testhosts.Host) error
	// cause is what an attempt that it has happened to may end with; "" where it must
	// go on. Where it is anywhere, the cause may be of any host.
	cause    job.Category
	anywhere bool
	// controller says that it is the controller that dies.
	controller bool
	loses      bool // what ranks have printed and what is to happen to it
	frozen     bool // ranks run for an instant when the host goes on, whenever that is
}

// meanwhile makes a mishap of two actions with some time between them.
func meanwhile(do, undo func(*testhosts.Host) error, least, most time.Duration) func(*tally, *testhosts.Host) error {
	return func(r *tally, h *testhosts.Host) error {
		err := do(h)
		r.sleep(least, most)
		return errors.Join(err, undo(h))
	}
}

// once makes a mishap of an action.
func once(do func(*testhosts.Host) error) func(*tally, *testhosts.Host) error {
	return func(_ *tally, h *testhosts.Host) error { return do(h) }
}

// kill makes a mishap of the end of one of the host's processes that is wanted.
func kill(wanted func(testhosts.Process) bool) func(*tally, *testhosts.Host) error {
	return func(r *tally, h *testhosts.Host) error {
		all, err := h.Processes("")
		all = slices.DeleteFunc(all, func(p testhosts.Process) bool { return !wanted(p) })
		if err != nil || len(all) == 0 {
			return errors.Join(err, errMissed)
		}
		err = syscall.Kill(all[r.random.IntN(len(all))].PID, syscall.SIGKILL)
		if err == syscall.ESRCH {
			return errMissed // it has just ended
		}
		return err
	}
}

// killController makes a mishap of the controller's end, and of its successor's coming
// some time later.
func killController(least, most time.Duration) func(*tally, *testhosts.Host) error {
	return func(r *tally, _ *testhosts.Host) error {
		if err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return err
		}
		<-r.exited
		if r.cmd.ProcessState.Exited() {
			return errMissed // the run was over
		}
		r.sleep(least, most)
		r.control("attach")
		return nil
	}
}

// fill makes a mishap of a full /tmp, where that can be written at all.
func fill(r *tally, h *testhosts.Host) error {
	if h == r.readOnly {
		return errMissed
	}
	return meanwhile(func(h *testhosts.Host) error { return h.Fill("/tmp") }, func(h *testhosts.Host) error { return h.Drain("/tmp") }, 0, 2*shortly)(r, h)
}

// errMissed is the error of a mishap to what was not there.
var errMissed = errors.New("there was nothing to happen to")

const long = 16 * time.Second // at most, from before a host is lost until after another attempt has begun

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
	clock    float64 // at, on the clock by which ranks stamp
	overAt   float64
}
