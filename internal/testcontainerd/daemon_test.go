package testcontainerd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/testimage"
)

// ctr runs ctr with these arguments and returns its output.
func ctr(t *testing.T, d *Daemon, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ctr", append([]string{"-a", d.Socket, "-n", "gangrun"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ctr %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// startBox starts a container with the name box from an image.
func startBox(t *testing.T, d *Daemon) {
	t.Helper()
	name := ctr(t, d, "images", "import", testimage.Busybox(t).Archive(t, "image.tar"))
	name = strings.Fields(strings.TrimPrefix(name, "unpacking "))[0]
	ctr(t, d, "run", "--detach", name, "box", "sleep", "1000")
}

// await waits until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(startLimit); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after %s: %s", startLimit, what)
		}
	}
}

func TestDaemon(t *testing.T) {
	d := Start(t)
	startBox(t, d)
	left := strings.Join(d.Left(), "\n")
	for _, want := range []string{"box\n", " Active\n", "containerd-shim", `"sleep" "1000"`, "mount at " + d.dir + "/state", "/gangrun/box"} {
		if !strings.Contains(left+"\n", want) {
			t.Errorf("a container runs, and there is no %q in:\n%s", want, left)
		}
	}
	d.Kill()
	if n := len(contained(d.dir)); n != 1 || len(d.Shims()) != 1 {
		t.Errorf("containerd was killed; there are %d containers and the shims %d", n, d.Shims())
	}
	d.Restart()
	if out := ctr(t, d, "tasks", "exec", "--exec-id", "x", "box", "echo", "here"); out != "here" {
		t.Errorf("after a restart of containerd, the container says %q", out)
	}
	for _, pid := range d.Shims() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	await(t, "no container without its shim", func() bool { return len(contained(d.dir)) == 0 })
	ctr(t, d, "containers", "rm", "box")
	await(t, "nothing left", func() bool { return len(d.Left()) == 0 })
}

// recorder is a test that only records how it fails.
type recorder struct {
	testing.TB
	text    string
	cleanup func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanup = f }
func (r *recorder) Errorf(format string, args ...any) {
	r.text += fmt.Sprintf(format, args...)
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// TestLeftBehind lets a test end while its container runs.
func TestLeftBehind(t *testing.T) {
	r := &recorder{TB: t}
	d := Start(r)
	startBox(t, d)
	pids, socket := slices.Concat(withArg(d.dir, configName), d.Shims(), contained(d.dir)), shimSockets(d.dir)[0]
	if _, err := os.Stat(socket); err != nil {
		t.Error(err)
	}
	r.cleanup()
	if !strings.Contains(r.text, "left behind:\nbox\n") {
		t.Errorf("the test ends with %q", r.text)
	}
	nothing(t, d.dir, socket, pids)
}

// TestKilledTest checks that the directory of a killed test is removed.
func TestKilledTest(t *testing.T) {
	r := &recorder{TB: t}
	d := Start(r)
	startBox(t, d)
	pids, socket := slices.Concat(withArg(d.dir, configName), d.Shims(), contained(d.dir)), shimSockets(d.dir)[0]
	if _, err := os.Stat(socket); err != nil {
		t.Error(err)
	}
	_ = d.lock.Close()
	Start(t) // or a test that starts in parallel, which then removes the directory
	await(t, "no directory", func() bool { _, err := os.Stat(d.dir); return os.IsNotExist(err) })
	_ = d.cmd.Wait()
	nothing(t, d.dir, socket, pids)
}

// nothing fails the test unless the three processes have ended, and the files, mounts and control groups are gone.
func nothing(t *testing.T, dir, socket string, pids []int) {
	t.Helper()
	if len(pids) != 3 {
		t.Errorf("there were the processes %d, want containerd, a shim and a container", pids)
	}
	await(t, "no process", func() bool { // the directory may be removed a moment before the last process has ended
		return !slices.ContainsFunc(pids, func(pid int) bool { return unix.Kill(pid, 0) == nil && !slices.Contains(zombies(), pid) })
	})
	for _, path := range []string{dir, socket, "/run/containerd/runc/gangrun/box"} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if len(mounts(dir)) > 0 {
		t.Errorf("mounts are left: %q", mounts(dir))
	}
	for _, pattern := range []string{"/sys/fs/cgroup/gangrun/box", "/sys/fs/cgroup/*/gangrun/box"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			t.Errorf("cgroups are left: %q", found)
		}
	}
}

// zombies returns the PIDs of the processes that have ended but were not reaped.
func zombies() (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		var pid int
		data, _ := os.ReadFile(path)
		if _, after, ok := strings.Cut(string(data), ") "); ok && strings.HasPrefix(after, "Z") {
			_, _ = fmt.Sscan(string(data), &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}
