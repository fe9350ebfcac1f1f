// Package testexec gives tests a program that hangs while the kernel executes it, as one
// on a file server that does not answer does.
package testexec

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/noskip"
)

// Hanging returns a copy of sleep(1) that nobody can execute before the test has ended or
// let is called: the kernel asks this process for its leave, by fanotify(7), and gets no
// answer.
func Hanging(t testing.TB) (path string, let func()) {
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
	let = sync.OnceFunc(func() { _ = unix.Close(fd) }) // which allows everything
	t.Cleanup(let)
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_EXEC_PERM, unix.AT_FDCWD, path); err != nil {
		t.Fatal(err)
	}
	return path, let
}
