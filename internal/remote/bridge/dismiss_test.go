package bridge

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDismiss: of an agent that ends before it can do anything nothing is left, and of
// one whose process lives on everything is.
func TestDismiss(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"ended": false, "lives on": true} {
		dir := filepath.Join(t.TempDir(), "agent")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := os.Create(filepath.Join(dir, lockName))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		pid, err := syscall.ForkExec(sleep, []string{"sleep", "1000"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2, lock.Fd()}})
		if err != nil {
			t.Fatal(err)
		}
		if !stays { // else this process holds what the agent's other one would
			lock.Close()
		}
		started{pid, dir}.end()
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("%s: its process is there: %v", name, err)
		}
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("%s: its directory: %v", name, err)
		}
		lock.Close()
	}
	started{}.end()
}
