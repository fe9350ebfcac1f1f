package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// conditions describes the conditions of a measurement: how busy the machine is, and whether the
// kernel shares the processors by sessions.
func conditions() string {
	read := func(path string) string {
		data, _ := os.ReadFile(path) // some kernels do not have the file; the text is then empty
		return string(data)
	}
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	text := fmt.Sprintf("this machine: %d cores, load %s", runtime.NumCPU(), load)
	if autogroups(read("/proc/sys/kernel/sched_autogroup_enabled"), read("/proc/self/cgroup")) {
		text += "; each session gets the same share of its time (autogroups): hydra's ranks have a session each, and\n" +
			"  beside other work get more than gangrun's, which share one; in a cpu cgroup, or on a quiet machine, it is the same"
	}
	return text
}

// autogroups reports whether the kernel gives each session the same share of the processors. enabled is the content of
// sched_autogroup_enabled, and cgroup that of /proc/self/cgroup. The kernel does so only for processes that are in no
// cpu cgroup.
func autogroups(enabled, cgroup string) bool {
	path, found := "/", false
	for line := range strings.Lines(cgroup) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		if v1 := slices.Contains(strings.Split(fields[1], ","), "cpu"); v1 || !found && fields[0] == "0" {
			path, found = fields[2], v1
		}
	}
	return strings.TrimSpace(enabled) == "1" && path == "/"
}
