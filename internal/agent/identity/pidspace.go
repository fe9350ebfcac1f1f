package identity

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// AgentName returns a name for the agent whose PID is pid. The names of the agent's directories and cgroups
// have it as a part. It consists of the PID and the number of the PID namespace, because several containers may
// share the places of these directories and cgroups, and may use the same PIDs.
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
