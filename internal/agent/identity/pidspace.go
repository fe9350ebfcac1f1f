package identity

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// AgentName returns the part of the names of directories and cgroups that identifies the agent with
// a PID. It consists of the PID and the number of the PID namespace, because several containers may
// share these directories and cgroups and use the same PIDs.
func AgentName(pid int) string { return fmt.Sprintf("%d.%s", pid, PIDNamespace()) }

// PIDNamespace returns the number of this process's PID namespace, or "0" if it is not known.
var PIDNamespace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	_, number, ok := strings.Cut(strings.TrimSuffix(link, "]"), "[")
	if !ok {
		return "0"
	}
	return number
})
