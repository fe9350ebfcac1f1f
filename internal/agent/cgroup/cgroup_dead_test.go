package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/identity"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/noskip"
)

// TestDeadCgroups: cgroups that no agent has made are left alone, whatever their names
// begin with, and what ranks have made in that of a dead agent holds up nobody.
func TestDeadCgroups(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	own := cgroupPath(os.Getpid())
	if own == "" {
		noskip.Skip(t, "there is no version 2 hierarchy")
	}
	// A parent of the test's own: agents that start meanwhile end what is dead beside theirs.
	parent := filepath.Join(filepath.Dir(own), "test-of-gangrun-"+strconv.Itoa(os.Getpid()))
	strange := filepath.Join(parent, "gangrun.service")
	dead := filepath.Join(parent, "gangrun.4000000."+identity.PIDNamespace())
	for _, path := range []string{parent, strange, dead, filepath.Join(dead, "made"), filepath.Join(dead, "made", "below")} {
		if err := os.Mkdir(path, 0o755); err != nil {
			noskip.Skip(t, "no cgroup can be made here: %v", err)
		}
		defer os.Remove(path)
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := os.WriteFile(filepath.Join(strange, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	endDeadIn(parent)
	if took := time.Since(begun); took > process.KillLimit/2 {
		t.Errorf("it took %v", took)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the dead agent's cgroup is there")
	}
	var status unix.WaitStatus
	if pid, err := unix.Wait4(cmd.Process.Pid, &status, unix.WNOHANG, nil); pid != 0 || err != nil {
		t.Errorf("the process in %s is gone", strange)
	}
}
