package openmpi

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
)

// processes has the processes of Open MPI and gangrun, but not those of the ranks.
type processes struct {
	mu       sync.Mutex
	runtimes []*process.Child // mpirun and daemons
	helpers  map[int]bool     // shims and rsh agents, by PID
}

func (p *processes) addRuntime(child *process.Child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runtimes = append(p.runtimes, child)
}

func (p *processes) addHelper(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.helpers[pid] = true
}

func (p *processes) owns(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.helpers[pid] || slices.ContainsFunc(p.runtimes, func(child *process.Child) bool { return child.PID == pid })
}

// kill kills mpirun and the daemons.
func (p *processes) kill(children *process.Children) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, child := range p.runtimes {
		children.Signal(child, unix.SIGKILL)
	}
}
