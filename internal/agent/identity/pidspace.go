package identity

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// AgentName returns the name of the agent with a PID in names of directories and cgroups, which
// containers may share that have PIDs of their own: the PID and the number of the PID
// namespace.
func AgentName(pid int) string { return fmt.Sprintf("%d.%s", pid, PIDNamespace()) }

// PIDNamespace returns the number of this process's PID namespace, or "0" where it is not
// known.
var PIDNamespace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	_, number, ok := strings.Cut(strings.TrimSuffix(link, "]"), "[")
	if !ok {
		return "0"
	}
	return number
})
