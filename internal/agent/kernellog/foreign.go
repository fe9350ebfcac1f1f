package kernellog

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/identity"
	"github.com/gangrun/gangrun/internal/pattern"
	"github.com/gangrun/gangrun/internal/procfs"
)

// initialCgroups is the cgroup namespace of a host, in which paths are as the kernel's log has them. See
// PROC_CGROUP_INIT_INO in the kernel's include/linux/proc_ns.h.
const initialCgroups = "cgroup:[4026531835]"

// group is the memory cgroup of this process. It is used to recognise OOM kills of other jobs. It
// is "" if that is not possible.
type group string

// ownGroup returns the group of this process.
func ownGroup() group {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || procfs.Namespace(os.Getpid(), "cgroup") != initialCgroups {
		return ""
	}
	return memoryGroup(string(data))
}

// memoryGroup returns the group of the memory controller that a /proc/PID/cgroup names, of version 1 if
// there is one.
func memoryGroup(text string) (found group) {
	for line := range strings.Lines(text) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		switch {
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			return group(path)
		case id == "0" && controllers == "":
			found = group(path)
		}
	}
	return found
}

// foreign reports whether a text of the kernel's log is about an OOM kill of another job: the
// process is none of ours, and the cgroup that was full is not one to which this agent belongs.
func (g group) foreign(text string, ours []int) bool {
	if g == "" {
		return false
	}
	m := oomKill().FindStringSubmatch(text)
	if m == nil {
		return false
	}
	full := m[1]
	if pid, err := strconv.Atoi(m[2]); err != nil || slices.Contains(ours, pid) {
		return false
	}
	return !within(string(g), full) && !(g != "/" && within(full, string(g))) && !strings.HasPrefix(full, "/gangrun."+identity.AgentName(os.Getpid()))
}

// The kernel logs two lines about an OOM kill. Only the first one names the cgroup that was full. After ten kills
// within five seconds, the kernel leaves out the first line (oom_rs in mm/oom_kill.c).
var (
	oomKill = pattern.New(`\boom_memcg=([^,]+).*,pid=(\d+)`)
	killed  = pattern.New(`\bKilled process (\d+)`)
)

// inGroup begins the second line about an OOM kill if a cgroup was full, and not the host.
const inGroup = "Memory cgroup out of memory: "

// filter leaves out the lines about OOM kills that are foreign.
type filter struct {
	group group
	kills map[string]bool // by the PIDs of the first lines about OOM kills: whether the kill was foreign
}

// drops reports whether a text is to be left out. none means that this agent's own cgroup counts its OOM kills,
// and has counted none since the last texts.
func (f *filter) drops(text string, ours []int, none bool) bool {
	if m := oomKill().FindStringSubmatch(text); m != nil {
		if f.kills == nil {
			f.kills = map[string]bool{}
		}
		f.kills[m[2]] = f.group.foreign(text, ours)
		return f.kills[m[2]]
	}
	m := killed().FindStringSubmatch(text)
	if m == nil {
		return false
	}
	if foreign, named := f.kills[m[1]]; named {
		delete(f.kills, m[1])
		return foreign
	}
	pid, err := strconv.Atoi(m[1])
	return none && strings.HasPrefix(text, inGroup) && err == nil && !slices.Contains(ours, pid)
}

// within reports whether a group is another one, or below it.
func within(path, other string) bool {
	return path == other || other == "/" || strings.HasPrefix(path, other+"/")
}
