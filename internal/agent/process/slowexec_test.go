package process_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/testexec"
)

// unexecuted waits until a child of this process is in the middle of its exec.
func unexecuted(t *testing.T) process.Process {
	t.Helper()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
		for _, p := range process.Descendants(os.Getpid()) {
			if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID)); err == nil && exe == self {
				return p
			}
		}
	}
	t.Fatal("no child is being executed after a minute")
	return process.Process{}
}

// inTime fails the test if f does not return within a minute.
func inTime(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		buf := make([]byte, 1<<16)
		t.Fatalf("%s does not return\n%s", what, buf[:runtime.Stack(buf, true)])
	}
}

// startSlow starts the slow program in the background. The channel gets the result.
func startSlow(c *process.Children, path string) <-chan error {
	started := make(chan error, 1)
	go func() {
		ch, err := c.Start(path, []string{"slow", "1000"}, &syscall.ProcAttr{
			Env: os.Environ(), Files: []uintptr{0, 1, 2},
			Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
		if err == nil {
			<-ch.Exited
			if ch.Status.Signal() != syscall.SIGKILL {
				err = errors.New("it was not killed")
			}
		}
		started <- err
	}()
	return started
}

// TestSlowExec checks the case that the kernel takes for ever to execute a program. Functions that end the gang must
// not wait for it, and the garbage collector of the agent must still work.
func TestSlowExec(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	c := processtest.New(t)
	other := mustShell(t, c, "sleep 1000", nil)
	path, _ := testexec.Hanging(t)
	started := startSlow(c, path)
	slow := unexecuted(t)
	garbage := make([][]byte, 0, 1<<10)
	for range 1 << 10 { // enough allocations to start a garbage collection
		garbage = append(garbage, make([]byte, 1<<18))
	}
	runtime.KeepAlive(garbage)
	inTime(t, "empty", func() {
		if empty, _ := c.Empty(); empty {
			t.Error("a process that is being executed is no child")
		}
	})
	inTime(t, "signal", func() {
		if !c.Signal(other, unix.SIGTERM) {
			t.Error("the child that was started before cannot be signalled")
		}
	})
	inTime(t, "killAll", func() { c.KillAll(nil) })
	if err := <-started; err != nil {
		t.Errorf("the slow program: %v", err)
	}
	if p, ok := process.Read(slow.PID); ok && p.Start == slow.Start {
		t.Error("the process that was being executed lives")
	}
	if _, err := processtest.Shell(c.Start, "exit 0", nil); !errors.Is(err, process.ErrEnding) {
		t.Errorf("a program was started after killAll: %v", err)
	}
}

// TestSlowExecAfterGC starts a program that hangs in exec, again and again, each time while this process collects
// garbage. The other goroutines of this process must still run.
func TestSlowExecAfterGC(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	c := processtest.New(t)
	path, _ := testexec.Hanging(t)
	for range 100 {
		collected := make(chan struct{})
		go func() {
			defer close(collected)
			for range 64 { // enough for several collections
				runtime.KeepAlive(make([]byte, 1<<20))
			}
		}()
		started := startSlow(c, path)
		var slow process.Process
		inTime(t, "a look at the processes", func() { slow = unexecuted(t) })
		slow.Signal(unix.SIGKILL)
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		<-collected
	}
}
