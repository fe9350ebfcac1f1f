package testhosts

import (
	"errors"
	"fmt"
	"syscall"
)

// Freezer says how Freeze stops a host: "cgroup.freeze", as far as its
// processes go in one instant, or "SIGSTOP", to one after the other.
func (b *Bed) Freezer() string {
	if b.cgroup == "" {
		return "SIGSTOP"
	}
	return "cgroup.freeze"
}

// Freeze stops all of the host's processes, as a machine does that hangs: its
// kernel still answers on the network.
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
	h.ice = true
	return nil
}

// signalStop stops what runs, and says whether nothing ran.
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

// Thaw lets a host that was frozen go on.
func (h *Host) Thaw() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.on(); err != nil {
		return err
	}
	if err := h.thaw(); err != nil {
		return fmt.Errorf("thawing %s: %w", h.name, err)
	}
	h.ice = false
	return nil
}

func (h *Host) thaw() error {
	if cgroup := h.bed.cgroupOf(h.name); cgroup != "" {
		return setFrozen(cgroup, false)
	}
	found, err := processes(h.init, "pid", "")
	parents := make(map[int]bool) // nsenter stops with what it has started
	for _, p := range found {
		parents[p.ppid] = true
		err = errors.Join(err, signal(p.PID, syscall.SIGCONT))
	}
	for ppid := range parents {
		if p, ok := process(fmt.Sprintf("/proc/%d", ppid)); ok && p.Name == "nsenter" {
			err = errors.Join(err, signal(ppid, syscall.SIGCONT))
		}
	}
	return err
}

// signal sends a signal to a process that may have ended.
func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
