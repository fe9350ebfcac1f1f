// Package processtest gives tests of other packages a process.Children.
package processtest

import (
	"os"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/process"
)

// New returns a Children for this process. No other test may run in this process (see agenttest.Alone). At the
// end of the test, all children are killed.
func New(t *testing.T) *process.Children {
	t.Helper()
	c, err := process.NewChildren()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.KillAll(nil)
		if empty, _ := c.Empty(); !empty {
			t.Error("some children did not end")
			return
		}
		c.Close()
	})
	return c
}

// Shell starts sh -c with the script. The output of the script goes to out or, if out is nil, to /dev/null.
func Shell(start process.Starter, script string, out *os.File) (*process.Child, error) {
	null, err := process.DevNull()
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if out == nil {
		out = null
	}
	return start("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), out.Fd(), null.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
}
