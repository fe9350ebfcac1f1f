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

// The kernel logs two lines about an OOM kill. Only the first one names the cgroup that was full.
var (
	oomKill = pattern.New(`\boom_memcg=([^,]+).*,pid=(\d+)`)
	killed  = pattern.New(`\bKilled process (\d+)`)
)

// filter leaves out the lines about OOM kills that are foreign.
type filter struct {
	group group
	last  string // the PID of the last kill that was foreign
}

// drops reports whether a text is to be left out.
func (f *filter) drops(text string, ours []int) bool {
	if f.group.foreign(text, ours) {
		f.last = oomKill().FindStringSubmatch(text)[2]
		return true
	}
	m := killed().FindStringSubmatch(text)
	return m != nil && f.last != "" && m[1] == f.last
}

// within reports whether a group is another one, or below it.
func within(path, other string) bool {
	return path == other || other == "/" || strings.HasPrefix(path, other+"/")
}
