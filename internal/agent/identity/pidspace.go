package identity

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// AgentName returns what stands for the agent with that PID in names that other containers see
// too, which may share directories and cgroups with this one but have PIDs of their own:
// the PID and the number of its PID namespace.
func AgentName(pid int) string { return fmt.Sprintf("%d.%s", pid, PIDNamespace()) }

// PIDNamespace is the number of this process's PID namespace; 0 where /proc does not tell.
var PIDNamespace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	_, number, ok := strings.Cut(strings.TrimSuffix(link, "]"), "[")
	if !ok {
		return "0"
	}
	return number
})
