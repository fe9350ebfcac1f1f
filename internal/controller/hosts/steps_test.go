package hosts

import (
	"context"
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
	"github.com/gangrun/gangrun/internal/testbuild"
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/slurm"
	"github.com/gangrun/gangrun/launcher/ssh"
	"github.com/gangrun/gangrun/launcher/suite"
)

// srun is a srun whose nodes are all this machine, and which ends without its servers.
const srun = `#!/bin/bash
while [[ $1 != -- ]]; do
	[[ $1 != -w ]] || nodes=${2//,/ }
	shift
done
shift
for node in $nodes; do SLURMD_NODENAME=$node "$@" & done
wait
`

// stepBed has agents that are started by servers of a fake srun.
type stepBed struct {
	dir string // of the program, by which its processes are known

	mu   sync.Mutex
	dirs []string // of agents that have been started
}

func newStepBed(t *testing.T) *stepBed {
	t.Helper()
	b := &stepBed{dir: t.TempDir()}
	if err := testbuild.Gangrun(b.program()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "srun"), []byte(srun), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *stepBed) program() string { return filepath.Join(b.dir, "gangrun") }

// dialer returns a Dialer of a job of its own.
func (b *stepBed) dialer(t *testing.T) agents.Dialer {
	t.Helper()
	steps, err := slurm.Open(slurm.Options{Program: b.program(), Dir: t.TempDir(), Nodes: []string{"h1", "h2", "h3", "h4"}, Grace: time.Minute, Srun: filepath.Join(b.dir, "srun")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := steps.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &ssh.Agents{
		Dialer: stepDialer{steps}, OrphanGrace: 20 * time.Second,
		Note: func(host, text string) { t.Errorf("note on %s: %s", host, text) },
		Started: func(_ string, at job.Agent) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dirs = append(b.dirs, fmt.Sprintf("/tmp/gangrun-%d/%s", os.Getuid(), at.Token))
		},
	}
}

// processes returns those of the program, by what they are.
func (b *stepBed) processes() map[string][]int {
	found := map[string][]int{}
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		if to, err := os.Readlink(exe); err != nil || to != b.program() {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(filepath.Dir(exe), "cmdline"))
		args := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		kind := ""
		switch {
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
func (b *stepBed) signal(kind string, sig syscall.Signal) error {
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

// suiteBed returns the bed of the suite.
func (b *stepBed) suiteBed() suite.Bed {
	end := func(kind string) func(*testing.T) {
		return func(t *testing.T) {
			if err := b.signal(kind, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	return suite.Bed{
		Dialer: b.dialer,
		Agents: func(int) map[string][]int {
			found := b.processes()
			delete(found, "bridge")
			delete(found, "step")
			return found
		},
		Far: &suite.Far{
			Cut:     func() { _ = b.signal("step", syscall.SIGSTOP) },
			Restore: func() { _ = b.signal("step", syscall.SIGCONT) },
			Left: func() []string {
				b.mu.Lock()
				defer b.mu.Unlock()
				return slices.DeleteFunc(slices.Clone(b.dirs), func(dir string) bool {
					_, err := os.Lstat(dir)
					return err != nil
				})
			},
			Break: map[string]func(*testing.T){"bridge killed": end("bridge"), "server killed": end("step")},
		},
	}
}

// TestStepSuite runs those tests of the suite for all ways to start processes that depend most on
// the servers of a job. TestSoakStepSuite runs all of them, and launcher/ssh all over the same
// transport.
func TestStepSuite(t *testing.T) {
	bed := newStepBed(t).suiteBed()
	bed.Only = []string{"good", "one agent a host", "environment", "logs are whole", "strays", "signals", "a connection that breaks", "lost agent", "nothing is left"}
	suite.Run(t, bed)
}
