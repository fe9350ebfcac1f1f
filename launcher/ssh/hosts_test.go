package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/agents/agentstest"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
	"github.com/gangrun/gangrun/internal/testbuild"
	"github.com/gangrun/gangrun/launcher/suite"
)

// builds has the directory in which gangrun is built, once for all tests that need it.
var builds struct {
	sync.Mutex
	dir     string
	program Program
}

// gangrun returns gangrun as a Program. The test binary cannot be used, because it is linked dynamically.
func gangrun(t testing.TB) Program {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "gangrun-ssh-test-")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "gangrun")
		if err := testbuild.Gangrun(path); err != nil {
			os.RemoveAll(dir)
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		builds.dir, builds.program = dir, Program{
			Hash: hex.EncodeToString(sum[:]), Size: int64(len(data)), Open: func() (io.ReadCloser, error) { return os.Open(path) },
		}
	}
	return builds.program
}

// removeBuilds removes the built gangrun.
func removeBuilds() { os.RemoveAll(builds.dir) }

// hosts are the hosts h1 to h4. They are all the same sshd behind one proxy. Programs are installed in a directory of
// the test's own, by which their processes are found.
type hosts struct {
	*sshtest.Site
	sshd  *sshtest.Server
	proxy *proxy

	mu   sync.Mutex
	dirs []string // the directories of the agents that were started
}

func newHosts(t testing.TB) *hosts {
	t.Helper()
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	h := &hosts{Site: s}
	h.sshd = s.Start("n1", "SetEnv XDG_CACHE_HOME="+s.Path("cache"))
	h.proxy = newProxy(t, h.sshd.Address())
	s.Write(".ssh/known_hosts", fmt.Sprintf("[127.0.0.1]:%s %s\n", h.proxy.port(), h.sshd.Public()))
	s.Write(".ssh/config", "Host h1 h2 h3 h4\n HostName 127.0.0.1\n Port "+h.proxy.port()+"\n")
	return h
}

// agents returns Agents for the hosts. Notes go to note. If note is nil, each note is a failure.
func (h *hosts) agents(t testing.TB, note func(host, text string)) *Agents {
	t.Helper()
	if note == nil {
		note = func(host, text string) { t.Errorf("note on %s: %s", host, text) }
	}
	return &Agents{
		Dialer: client(h.Site), Program: gangrun(t),
		OrphanGrace: 20 * time.Second, Note: note,
		Started: func(_ string, at job.Agent) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.dirs = append(h.dirs, fmt.Sprintf("/tmp/gangrun-%d/%s", os.Getuid(), at.Token))
		},
	}
}

// processes returns the PIDs of the processes whose programs were installed on the hosts, by their kinds: agent,
// watchdog (the inner one), outer watchdog or bridge.
func (h *hosts) processes() map[string][]int { return agentstest.Processes(h.Path("cache")) }

// left returns the directories of agents that are left on the hosts.
func (h *hosts) left() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.dirs), func(dir string) bool { return !h.Has(dir) })
}

func (h *hosts) bed(t *testing.T) suite.Bed {
	return suite.Bed{
		Dialer: func(t *testing.T) agents.Dialer { return h.agents(t, nil) },
		Agents: func(int) map[string][]int {
			found := h.processes()
			delete(found, "bridge")
			return found
		},
		Far: &suite.Far{
			Cut:     func() { h.proxy.set(true) },
			Restore: func() { h.proxy.set(false) },
			Left:    h.left,
			Break: map[string]func(*testing.T){
				"bridge killed": func(t *testing.T) {
					kill(t, some(t, func() []int { return h.processes()["bridge"] }))
				},
				"connection killed": func(t *testing.T) {
					kill(t, some(t, func() []int { return children(h.sshd.PID()) }))
				},
			},
		},
	}
}

// some waits until list returns at least one PID.
func some(t *testing.T, list func() []int) []int {
	t.Helper()
	for deadline := time.Now().Add(sshtest.Longest); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if pids := list(); len(pids) > 0 {
			return pids
		}
	}
	t.Fatal("there are none to kill")
	return nil
}

func kill(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
}

func children(pid int) (pids []int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for _, field := range strings.Fields(string(data)) {
		if n, err := strconv.Atoi(field); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}
