package hosts

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/agents/agentstest"
	"github.com/gangrun/gangrun/launcher/ssh"
)

// farBed has agents that a Dialer has started. All their hosts are this machine.
type farBed struct {
	dir string // the directory of the program, by which its processes are found

	mu   sync.Mutex
	dirs []string // the directories of the agents that were started
}

// agents returns Agents that use a Dialer.
func (b *farBed) agents(t *testing.T, d ssh.Dialer, program ssh.Program) *ssh.Agents {
	return &ssh.Agents{
		Dialer: d, Program: program, OrphanGrace: 20 * time.Second,
		Note: func(host, text string) { t.Errorf("note on %s: %s", host, text) },
		Started: func(_ string, at job.Agent) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dirs = append(b.dirs, fmt.Sprintf("/tmp/gangrun-%d/%s", os.Getuid(), at.Token))
		},
	}
}

// processes returns the PIDs of the processes whose programs are below b.dir, by their kinds.
func (b *farBed) processes() map[string][]int { return agentstest.Processes(b.dir) }

// signal sends a signal to all processes of a kind. It waits until there is one.
func (b *farBed) signal(kind string, sig syscall.Signal) error {
	var pids []int
	for deadline := time.Now().Add(time.Minute); len(pids) == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		pids = b.processes()[kind]
	}
	var errs []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// end returns a function that kills all processes of a kind.
func (b *farBed) end(kind string) func(*testing.T) {
	return func(t *testing.T) {
		if err := b.signal(kind, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

// agentProcesses implements suite.Bed.Agents.
func (b *farBed) agentProcesses(int) map[string][]int {
	found := b.processes()
	for _, other := range []string{"bridge", "step", "kubectl"} {
		delete(found, other)
	}
	return found
}

// left returns the directories of agents that still exist.
func (b *farBed) left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.dirs), func(dir string) bool {
		_, err := os.Lstat(dir)
		return err != nil
	})
}
