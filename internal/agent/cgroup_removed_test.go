package agent

import (
	"os"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/noskip"
)

// TestRemovedCgroup: ranks start without their cgroup where somebody has removed it.
func TestRemovedCgroup(t *testing.T) {
	if !alone(t) {
		return
	}
	c := newFamily(t)
	group := newCgroup(os.Getpid())
	if group == nil {
		noskip.Skip(t, "no cgroup can be made here")
	}
	defer group.close()
	if err := os.Remove(group.path); err != nil {
		t.Fatal(err)
	}
	ch, err := shell(func(path string, argv []string, attr *syscall.ProcAttr) (started *child, err error) {
		c.batch(func(start starter) { started, err = forkInto(start, group, path, argv, attr) })
		return started, err
	}, "exit 7", nil)
	if err != nil {
		t.Fatal(err)
	}
	if <-ch.exited; ch.status.ExitStatus() != 7 {
		t.Errorf("it ended with %#x", uint32(ch.status))
	}
}
