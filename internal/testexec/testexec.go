// Package testexec gives tests a program that hangs while the kernel begins to execute it. A
// program on a file server that does not answer hangs in the same way.
package testexec

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/noskip"
)

// Hanging returns the path of a copy of sleep(1). Executing it blocks until release is called or
// the test has ended: the kernel asks this process for permission, with fanotify(7), and gets no
// answer until then.
func Hanging(t testing.TB) (path string, release func()) {
	t.Helper()
	program, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "hanging")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if errors.Is(err, unix.EPERM) {
		noskip.Skip(t, "only root can hold up an exec: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = unix.Close(fd) }) // which allows everything
	t.Cleanup(release)
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_EXEC_PERM, unix.AT_FDCWD, path); err != nil {
		t.Fatal(err)
	}
	return path, release
}

// ChildEnv is the name of the environment variable by which Child tells its process what to do.
const ChildEnv = "GANGRUN_TEST_CHILD"

// Child returns a command that runs this test binary again, with ChildEnv set to kind and with more variables, as
// NAME=VALUE. TestMain of the package decides by ChildEnv what the process does.
func Child(t testing.TB, kind string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), ChildEnv+"="+kind, "GORACE=atexit_sleep_ms=0"), env...)
	cmd.Stderr = os.Stderr
	return cmd
}
