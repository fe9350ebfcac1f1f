package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/ssh"
)

// farBed has agents that a Dialer has started on hosts that are all this machine.
type farBed struct {
	dir string // of the program, by which its processes are known

	mu   sync.Mutex
	dirs []string // of agents that have been started
}

// agents starts agents over connections of a Dialer.
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

// processes returns those of programs below b.dir, by what they are.
func (b *farBed) processes() map[string][]int {
	found := map[string][]int{}
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		data, _ := os.ReadFile(filepath.Join(filepath.Dir(exe), "cmdline"))
		args := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		to, err := os.Readlink(exe)
		kind := ""
		switch {
		case args[0] == filepath.Join(b.dir, "kubectl"):
			kind = "kubectl"
		case err != nil || !strings.HasPrefix(to, b.dir+"/"):
			continue
		case len(args) == 4 && args[1] == "agent" && args[3] == "worker":
			kind = "agent"
		case len(args) == 4 && args[1] == "agent" && args[3] == "watchdog":
			kind = "watchdog"
		case len(args) == 3 && args[1] == "agent":
			kind = "outer watchdog"
		case len(args) > 1 && (args[1] == "bridge" || args[1] == "step"):
			kind = args[1]
		default:
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
		found[kind] = append(found[kind], pid)
	}
	return found
}

// signal sends a signal to all processes of a kind, once there are some.
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

// left returns the directories of agents that are still there.
func (b *farBed) left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.dirs), func(dir string) bool {
		_, err := os.Lstat(dir)
		return err != nil
	})
}
