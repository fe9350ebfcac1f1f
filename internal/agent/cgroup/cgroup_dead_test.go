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

// TestDeadCgroups checks that control groups that no agent has made are not removed, whatever their names are. Groups
// that ranks have made in the group of a dead agent must be removed, too.
func TestDeadCgroups(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	own := cgroupPath(os.Getpid())
	if own == "" {
		noskip.Skip(t, "there is no version 2 hierarchy")
	}
	// The test uses its own parent group. Agents that start meanwhile could otherwise remove the dead groups beside
	// their own.
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
