package testhosts

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/testcontainerd"
)

//go:embed containerd.sh
var containerdScript string

// Containerd makes each host start a containerd of its own when it boots. Its socket is
// /run/containerd/containerd.sock, which only the host sees. Images are on the host's disk and are
// kept after a power-off. Containers have cgroups of version 1, below those of their host.
//
// The program is the one in PATH, or the one that the environment variable testcontainerd.Binary
// names. All hosts must see it. If there is a containerd-shim-runc-v2 in the directory of the
// program, containerd uses that.
func Containerd() Option { return func(s *settings) { s.containerd = true } }

// containerdOf returns the program that hosts run as containerd, "" for none. An error names what this
// machine lacks to run it on hosts.
func containerdOf(s settings) (string, error) {
	if !s.containerd {
		return "", nil
	}
	if len(V1Roots()) == 0 {
		return "", errors.New("containerd on simulated hosts takes cgroups of version 1, which this machine lacks")
	}
	var paths []string
	for _, name := range []string{"runc", cmp.Or(os.Getenv(testcontainerd.Binary), "containerd")} {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("containerd on simulated hosts takes %q, which is not on PATH: run: make deps/test", name)
		}
		paths = append(paths, path)
	}
	return filepath.Abs(paths[1])
}

// KillContainerd kills the host's containerd and returns when it has ended. Its shims and the
// containers continue.
func (h *Host) KillContainerd() error {
	_, err := h.bash(`read -r pid </run/containerd.pid; kill -KILL "$pid"
		while [[ -d /proc/$pid ]]; do sleep 0.01; done`)
	return err
}

// StartContainerd starts the host's containerd again, and returns when it listens.
func (h *Host) StartContainerd() error {
	if h.bed.containerd == "" {
		return errors.New("the hosts run no containerd")
	}
	_, err := h.bash(containerdScript, h.bed.containerd)
	return err
}

// bash runs a script on the host for at most limit, and returns what it prints. It ends with the
// first command that fails.
func (h *Host) bash(script string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return h.Exec(ctx, append([]string{"bash", "-e", "-c", script, "bash"}, args...)...)
}

// Shims returns the shims of containerd on the host: one process for each container.
func (h *Host) Shims() ([]Process, error) {
	all, err := h.Processes("")
	var shims []Process
	for _, p := range all {
		// The last argument of a shim that only removes a container, or starts one, says so.
		if strings.HasPrefix(p.Name, "containerd-shim") && !slices.Contains([]string{"delete", "start"}, p.Args[len(p.Args)-1]) {
			shims = append(shims, p)
		}
	}
	return shims, err
}

// KillShims kills all shims of the host and returns when they have ended. If containerd runs, it
// then ends the containers.
func (h *Host) KillShims() error {
	shims, err := h.Shims()
	for _, p := range shims {
		err = errors.Join(err, signal(p.PID, syscall.SIGKILL))
	}
	if err != nil {
		return err
	}
	return eventually(func() (bool, error) {
		all, err := h.Shims()
		return !slices.ContainsFunc(all, func(p Process) bool {
			return slices.ContainsFunc(shims, func(killed Process) bool { return killed.PID == p.PID })
		}), err
	})
}

// containersLeft prints what the host has of containers. A directory for each namespace of containerd
// stays in cgroups.
const containersLeft = `for n in $(ctr namespaces ls -q); do
	for what in containers leases; do ctr -n "$n" "$what" ls -q | sed "s/^/$what $n /"; done
	ctr -n "$n" snapshots ls | awk -v "n=$n" '$NF == "Active" { print "snapshots", n, $1 }'
done
find /run/containerd/fifo /run/containerd/io.containerd.runtime.v2.task/*/ -mindepth 1 -maxdepth 1 2>/dev/null || true
find /sys/fs/cgroup/* -mindepth 2 -type d ! -path "/sys/fs/cgroup/unified/*"
grep -E " /run/containerd/| /tmp/containerd-mount" /proc/mounts || true
ls -d /tmp/gangrun-box-* /dev/shm/gangrun-layers-* 2>/dev/null || true`

// ContainersLeft returns everything that still exists of containers on the host: shims, containers,
// snapshots other than those of images, leases, fifos, cgroups, mounts, and gangrun's directories
// for containers. The host's containerd must run.
func (h *Host) ContainersLeft() (left []string, err error) {
	shims, err := h.Shims()
	for _, p := range shims {
		left = append(left, "process "+p.String())
	}
	out, execErr := h.bash(containersLeft)
	for line := range strings.Lines(out) {
		left = append(left, strings.TrimSpace(line))
	}
	return left, errors.Join(err, execErr)
}
