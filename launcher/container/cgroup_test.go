package container_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/launcher/container"
)

// TestCgroups checks that the control groups of a container whose shim was killed are removed, even if the runtime
// could not do so because of a process in one of them. At the end of the test, internal/testcontainerd checks that
// nothing is left.
func TestCgroups(t *testing.T) {
	b := newBed(t)
	const id = "gangrun-cgroups"
	c, err := b.runtime.Start(t.Context(), container.Spec{ID: id, Image: b.image, Args: []string{"/bin/sleep", "1000"}, Log: t.TempDir() + "/log"})
	if err != nil {
		t.Fatal(err)
	}
	late := exec.Command("sleep", "1000")
	if err := late.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- late.Wait() }()
	defer func() {
		_ = late.Process.Kill()
		<-ended
	}()
	// In the hierarchies of version 1, runc kills only the processes in the cgroup for devices.
	dir := "/sys/fs/cgroup/gangrun/" + id
	if v1 := "/sys/fs/cgroup/pids/gangrun/" + id; exists(v1) {
		dir = v1
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(late.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	for _, pid := range b.Shims() {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.End(ctx); err != nil {
		t.Error(err)
	}
	if exists(dir) {
		t.Errorf("%s is left", dir)
	}
	select {
	case err := <-ended:
		ended <- err
	case <-ctx.Done():
		t.Error("the process in the cgroup goes on")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
