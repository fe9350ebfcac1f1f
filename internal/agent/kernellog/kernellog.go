// Package kernellog finds what the kernel has logged about processes that it has killed, and about GPUs that
// have failed.
package kernellog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// Watch reads the kernel's log, if this user may read it, and the kernel's count of OOM kills.
type Watch struct {
	log     *Log
	foreign filter
	kills   int64
}

// Start returns a Watch that begins at the present end of the kernel's log.
func Start() *Watch {
	k := &Watch{log: OpenLog(), foreign: filter{group: ownGroup()}}
	k.kills, _ = oomKills()
	return k
}

// Close closes the kernel's log.
func (k *Watch) Close() { k.log.Close() }

// Lines returns what the kernel has logged about killed processes and failed GPUs since the last call of Lines.
// It also returns one line if the kernel's count of OOM kills has risen. host is the name of this host, and
// ours has the PIDs of the ranks.
//
// Lines leaves out OOM kills of other jobs. A kill of a process in ours is never left out. Otherwise, a kill counts as
// one of another job if the cgroup that ran out of memory neither contains this agent nor is below the agent's cgroup.
// The kernel may not say which cgroup that was. Then Lines looks at the number of OOM kills in the agent's own cgroup,
// and leaves the kill out if that number is known and has not risen since the last call.
func (k *Watch) Lines(host string, ours []int) []job.Line {
	var lines []job.Line
	say := func(text string) {
		lines = append(lines, job.Line{Source: job.SourceKernel, Host: host, Rank: -1, File: "/dev/kmsg", Time: hostclock.Now(), Text: text})
	}
	texts := slices.Collect(k.log.New())
	now, file := oomKills() // the kernel counts a kill before it logs it
	none := now <= k.kills && file != "" && file != hostKills
	for _, text := range texts {
		if evidence(text) && !k.foreign.drops(text, ours, none) {
			say(text)
		}
	}
	if now > k.kills {
		say(fmt.Sprintf("oom_kill count rose by %d during the attempt", now-k.kills))
		last := &lines[len(lines)-1]
		last.File, last.Reason = file, job.ReasonOOMKills
		k.kills = now
	}
	return lines
}

// evidence reports whether a text is about a killed process or a GPU that failed.
func evidence(text string) bool {
	for _, word := range []string{"Killed process", "oom-kill:", "Out of memory", "segfault at", "general protection", "NVRM: Xid", "fallen off the bus"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// KillsFile returns the path of the file in which the kernel counts the OOM kills in the memory cgroup of
// the process pid. It returns "" if there is no such file.
func KillsFile(pid int) string {
	of, _ := os.ReadFile(procfs.Path(pid, "cgroup"))
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for _, file := range oomFiles(string(of), string(mounts)) {
		if _, ok := Kills(file); ok {
			return file
		}
	}
	return ""
}

// Kills returns the number of OOM kills in file, a path that KillsFile has returned. ok is false if
// the file cannot be read or has no such number.
func Kills(file string) (n int64, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	return oomCount(string(data))
}

// hostKills has the kernel's count of all OOM kills of the host.
const hostKills = "/proc/vmstat"

// oomKills returns the count of OOM kills of this process's own memory cgroup, else that of the
// host, which counts other jobs too (oom_kill of /proc/vmstat, Linux 4.13). file is where it
// was read.
func oomKills() (kills int64, file string) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for _, file := range append(oomFiles(string(own), string(mounts)), hostKills) {
		if n, ok := Kills(file); ok {
			return n, file
		}
	}
	return 0, ""
}

// oomFiles returns where the OOM kills of a process's memory cgroup are counted,
// in version 2 (memory.events) and version 1 (memory.oom_control) hierarchies,
// given its /proc/PID/cgroup and /proc/PID/mountinfo.
func oomFiles(own, mounts string) (files []string) {
	for _, g := range cgroup.MemoryOf(own, mounts) {
		files = append(files, CountFile(g))
	}
	return files
}

// CountFile returns the path of the file in which the kernel counts the OOM kills in a memory
// cgroup.
func CountFile(g cgroup.Memory) string {
	if g.V1 {
		return filepath.Join(g.Dir, "memory.oom_control")
	}
	return filepath.Join(g.Dir, "memory.events")
}

// oomCount reads the line "oom_kill N".
func oomCount(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
