package cgroup

import (
	"os"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/noskip"
)

// TestRemovedCgroup checks that ranks start without their control group if it was removed.
func TestRemovedCgroup(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	c := processtest.New(t)
	group := New(os.Getpid())
	if group == nil {
		noskip.Skip(t, "no cgroup can be made here")
	}
	defer group.Close()
	if err := os.Remove(group.path); err != nil {
		t.Fatal(err)
	}
	ch, err := processtest.Shell(func(path string, argv []string, attr *syscall.ProcAttr) (started *process.Child, err error) {
		c.Batch(func(start process.Starter) { started, err = group.Start(start, path, argv, attr) })
		return started, err
	}, "exit 7", nil)
	if err != nil {
		t.Fatal(err)
	}
	if <-ch.Exited; ch.Status.ExitStatus() != 7 {
		t.Errorf("it ended with %#x", uint32(ch.Status))
	}
}
