// Package tempfiles makes and removes temporary files of agents and ranks, so that nothing is left behind: the
// directories of agents, their links to this program, and what MPI libraries make in shared memory.
package tempfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/identity"
	"github.com/gangrun/gangrun/internal/agent/process"
)

// Fallbacks are the directories in which an agent makes its own if it cannot write to /tmp.
var Fallbacks = []string{"/var/tmp", SharedDir}

// Prefix returns the beginning of the names of an agent's temporary directories. agent is the PID of the agent.
func Prefix(agent int) string {
	return fmt.Sprintf("gangrun-%d-%s-", os.Getuid(), identity.AgentName(agent))
}

// Remove removes the temporary directories and links that a killed agent has left. agent is the PID of the agent.
func Remove(agent int) {
	RemoveLinks(agent)
	for _, dir := range append([]string{os.TempDir()}, Fallbacks...) {
		left, _ := filepath.Glob(filepath.Join(dir, Prefix(agent)+"*"))
		for _, path := range left {
			_ = os.RemoveAll(path)
		}
	}
}

// RemoveDead removes the files of agents of this PID namespace that were killed together with
// their watchdogs.
func RemoveDead() {
	removeDeadDirs()
	removeDeadLinks()
}

func removeDeadDirs() {
	self := Prefix(os.Getpid())
	begin, end := fmt.Sprintf("gangrun-%d-", os.Getuid()), self[strings.LastIndex(self, "."):] // .NAMESPACE-
	for _, dir := range append([]string{os.TempDir()}, Fallbacks...) {
		paths, _ := filepath.Glob(filepath.Join(dir, begin+"*"+end+"*"))
		for _, path := range paths {
			name := strings.TrimPrefix(filepath.Base(path), begin)
			number, _, _ := strings.Cut(name, ".")
			pid, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			if _, alive := process.Read(pid); !alive {
				Remove(pid)
			}
		}
	}
}
