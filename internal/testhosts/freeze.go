package testhosts

import (
	"errors"
	"fmt"
	"syscall"
)

// Freezer returns how Freeze stops a host. With "cgroup.freeze", it stops all processes at the
// same time; with "SIGSTOP", one after the other.
func (b *Bed) Freezer() string {
	if b.cgroup == "" {
		return "SIGSTOP"
	}
	return "cgroup.freeze"
}

// Freeze stops all of the host's processes, like a machine that hangs: its kernel still
// answers on the network.
func (h *Host) Freeze() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.on(); err != nil {
		return err
	}
	var err error
	if cgroup := h.bed.cgroupOf(h.name); cgroup != "" {
		err = setFrozen(cgroup, true)
	} else {
		err = eventually(h.signalStop)
	}
	if err != nil {
		return fmt.Errorf("freezing %s: %w", h.name, err)
	}
	h.frozen = true
	return nil
}

// signalStop stops the processes that run, and reports whether none ran.
func (h *Host) signalStop() (bool, error) {
	found, err := processes(h.init, "pid", "")
	still := true
	for _, p := range found {
		if p.State == 'T' {
			continue
		}
		still = false
		err = errors.Join(err, signal(p.PID, syscall.SIGSTOP))
	}
	return still, err
}

// Thaw undoes Freeze.
func (h *Host) Thaw() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.on(); err != nil {
		return err
	}
	if err := h.thaw(); err != nil {
		return fmt.Errorf("thawing %s: %w", h.name, err)
	}
	h.frozen = false
	return nil
}

func (h *Host) thaw() error {
	if cgroup := h.bed.cgroupOf(h.name); cgroup != "" {
		return setFrozen(cgroup, false)
	}
	found, err := processes(h.init, "pid", "")
	waiting, waitingErr := h.waiting()
	return errors.Join(err, waitingErr, resume(found), resume(waiting))
}

// wake kills the processes of a host that is stopped by signals. It also continues those that
// wait for them, which are stopped as well.
func (h *Host) wake() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bed.cgroup != "" || !h.up() || !h.frozen {
		return nil
	}
	return h.kill()
}

// waiting returns the nsenter processes of commands on the host: nsenter stops when its child
// does. Freezing a cgroup does not stop them.
func (h *Host) waiting() ([]Process, error) {
	if h.bed.cgroup != "" {
		return nil, nil
	}
	found, err := processes(h.init, "pid", "")
	seen := make(map[int]bool)
	var waiting []Process
	for _, p := range found {
		parent, ok := process(fmt.Sprintf("/proc/%d", p.ppid))
		if ok && parent.Name == "nsenter" && !seen[p.ppid] {
			seen[p.ppid] = true
			waiting = append(waiting, parent)
		}
	}
	return waiting, err
}

func resume(stopped []Process) error {
	var errs []error
	for _, p := range stopped {
		errs = append(errs, signal(p.PID, syscall.SIGCONT))
	}
	return errors.Join(errs...)
}

// signal sends a signal to a process that may have ended.
func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
