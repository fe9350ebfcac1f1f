package bridge

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDismiss checks that end removes the directory of an agent whose processes have all ended, and leaves it if
// another process still has the lock.
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
		if !stays { // otherwise, this process holds the lock, as another process of the agent would
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
