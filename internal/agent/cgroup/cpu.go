package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is a control group that may limit the CPU time of a process (cpu.max, cpu.cfs_quota_us).
type CPU struct {
	stat string // the path of the group's cpu.stat
	key  string // the key in cpu.stat of the time in which the limit held up processes
	unit time.Duration
}

// CPUOf returns the control groups that may limit the CPU time of a process: the process's own group and the
// groups above it. own is the text of its /proc/PID/cgroup, and mounts the text of a /proc/PID/mountinfo.
func CPUOf(own, mounts string) (all []CPU) {
	for _, g := range groupsOf(own, mounts, "cpu") {
		for dir := g.Dir; strings.HasPrefix(dir, g.Mount) && dir != "/"; dir = filepath.Dir(dir) {
			c := CPU{filepath.Join(dir, "cpu.stat"), "throttled_usec ", time.Microsecond}
			if g.V1 {
				c.key, c.unit = "throttled_time ", time.Nanosecond
			}
			if _, ok := c.Throttled(); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// Throttled returns how long the limit has held up processes of the group, summed over all CPUs. ok is false if
// the group is gone, or cannot limit CPU time.
func (c CPU) Throttled() (held time.Duration, ok bool) {
	data, err := os.ReadFile(c.stat)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if text, found := strings.CutPrefix(line, c.key); found {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return time.Duration(n) * c.unit, err == nil
		}
	}
	return 0, false
}
