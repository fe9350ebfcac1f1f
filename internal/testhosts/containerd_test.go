package testhosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testcontainerd"
	"github.com/gangrun/gangrun/internal/testimage"
)

// imageName is the name of the Debian image of testimage.
const imageName = "gangrun.test/bookworm-mpi:1"

// load loads the Debian image on a host.
func load(t *testing.T, h *Host) {
	t.Helper()
	archive, err := os.Open(testimage.Debian(t))
	must(t, err)
	defer archive.Close()
	cmd, err := h.Command(t.Context(), "ctr", "images", "import", "-")
	must(t, err)
	cmd.Stdin = archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// startBox starts a container with the name box. The container shares the network and the PID namespace of the host.
func startBox(t *testing.T, h *Host) {
	t.Helper()
	on(t, h, "ctr", "run", "--detach", "--net-host", "--with-ns", "pid:/proc/1/ns/pid", imageName, "box", "sleep", "1000")
}

// inBox runs a command in the container box.
func inBox(t *testing.T, h *Host, argv ...string) string {
	t.Helper()
	return on(t, h, append([]string{"ctr", "tasks", "exec", "--exec-id", "x", "box"}, argv...)...)
}

// boxes returns the number of processes in containers on a host.
func boxes(t *testing.T, h *Host) (n int) {
	t.Helper()
	all, err := h.Processes("")
	must(t, err)
	for _, p := range all {
		if slices.Equal(p.Args, []string{"sleep", "1000"}) {
			n++
		}
	}
	return n
}

func TestContainerd(t *testing.T) {
	b := Up(t, 2, Containerd())
	for _, h := range b.Hosts() {
		load(t, h)
		startBox(t, h) // both hosts have a container of the same name
	}
	for _, h := range b.Hosts() {
		for _, ns := range []string{"net", "pid"} {
			if got, want := inBox(t, h, "readlink", "/proc/self/ns/"+ns), on(t, h, "readlink", "/proc/self/ns/"+ns); got != want {
				t.Errorf("in the container, %s is %s, want the host's %s", ns, got, want)
			}
		}
		if got := inBox(t, h, "cat", "/proc/1/cmdline"); !strings.Contains(got, h.Name()) {
			t.Errorf("in the container, process 1 is %q", got)
		}
		if got := inBox(t, h, "cat", "/proc/self/cgroup"); !strings.Contains(got, "memory:/default/box") {
			t.Errorf("the container's cgroups are not below the host's:\n%s", got)
		}
		if out, err := h.Exec(t.Context(), "ctr", "tasks", "exec", "--exec-id", "y", "box", "test", "-e", "/run/containerd/containerd.sock"); err == nil {
			t.Errorf("the container sees the host's socket: %s", out)
		}
	}

	h, other := b.Host(1), b.Host(2)
	must(t, h.KillContainerd())
	if _, err := h.Exec(t.Context(), "ctr", "--connect-timeout", "1s", "version"); err == nil || boxes(t, h) != 1 {
		t.Errorf("containerd was killed: ctr says %v, and there are %d containers", err, boxes(t, h))
	}
	must(t, h.StartContainerd())
	if got := inBox(t, h, "echo", "here"); got != "here" {
		t.Errorf("after a restart of containerd, the container says %q", got)
	}
	if shims, err := h.Shims(); err != nil || len(shims) != 1 {
		t.Errorf("the host has the shims %v, %v", shims, err)
	}
	must(t, h.KillShims())
	must(t, eventually(func() (bool, error) { return boxes(t, h) == 0, nil }))
	if got := inBox(t, other, "echo", "here"); got != "here" {
		t.Errorf("the other host's container says %q", got)
	}

	if left := left(t, other); !strings.Contains(left, "containers default box\nsnapshots default box") || !strings.Contains(left, "/sys/fs/cgroup/memory/default/box") {
		t.Errorf("the other host has of containers:\n%s", left)
	}
	must(t, other.Poweroff())
	must(t, other.Boot())
	if got := on(t, other, "ctr", "tasks", "ls", "-q"); got != "" {
		t.Errorf("after a power-off, the tasks are %q", got)
	}
	if got := on(t, other, "ctr", "run", "--rm", imageName, "again", "echo", "here"); got != "here" {
		t.Errorf("a new container says %q", got)
	}
	for _, h := range b.Hosts() {
		on(t, h, "ctr", "containers", "rm", "box")
		on(t, h, "sh", "-c", "rm -rf /run/containerd/fifo/*") // left by the container whose shim was killed
		if err := eventually(func() (bool, error) { return left(t, h) == "", nil }); err != nil {
			t.Errorf("%s has of containers:\n%s", h.Name(), left(t, h))
		}
	}
	must(t, b.Close())
	b.nothingLeft(t)
}

// left returns the leftovers of containers on a host, one on each line.
func left(t *testing.T, h *Host) string {
	t.Helper()
	left, err := h.ContainersLeft()
	must(t, err)
	return strings.Join(left, "\n")
}

// nothingLeft fails the test if a bed has left control groups, mounts or processes.
func (b *Bed) nothingLeft(t *testing.T) {
	t.Helper()
	for _, root := range V1Roots() {
		if left, err := filepath.Glob(filepath.Join(root, "*"+filepath.Base(b.dir)+"*")); err != nil || len(left) > 0 {
			t.Errorf("cgroups are left: %q, %v", left, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	if strings.Contains(string(mounts), b.dir) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, dir := range all {
		// All processes of a bed, also those in containers, were in a control group of the bed.
		if groups, err := os.ReadFile(filepath.Join(dir, "cgroup")); err == nil && strings.Contains(string(groups), filepath.Base(b.dir)) {
			args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			t.Errorf("process %s is left: %q", dir, args)
		}
	}
}

func TestWithoutContainerd(t *testing.T) {
	Need(t)
	t.Setenv(testcontainerd.Binary, "/no/containerd")
	if _, err := New(1, Containerd()); err == nil || !strings.Contains(err.Error(), `"/no/containerd", which is not on PATH: run: make deps/test`) {
		t.Errorf("without a containerd: %v", err)
	}
	b := Up(t, 1)
	if err := b.Host(1).StartContainerd(); err == nil || err.Error() != "the hosts run no containerd" {
		t.Errorf("starting a containerd: %v", err)
	}
}
