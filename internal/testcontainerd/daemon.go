// Package testcontainerd runs a containerd for one test. It needs root.
package testcontainerd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/internal/procfs"
)

// Binary is the variable of the environment that names another containerd than that of PATH.
const Binary = "GANGRUN_TEST_CONTAINERD"

// Daemon is a containerd with directories and a socket of its own.
type Daemon struct {
	Socket string
	t      testing.TB
	dir    string
	binary string
	cmd    *exec.Cmd
}

// config has the plugins switched off that need what a test machine may lack, or that tests do not use.
const config = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[grpc]
  address = "%[1]s/containerd.sock"
[ttrpc]
  address = "%[1]s/containerd.sock.ttrpc"
`

// startLimit bounds the start and the end of a containerd.
const startLimit = 20 * time.Second

// Start starts a containerd. When the test ends, the containerd ends, too, and the test fails if a
// container is left.
func Start(t testing.TB) *Daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		noskip.Skip(t, "containerd needs root")
	}
	binary := os.Getenv(Binary)
	if binary == "" {
		var err error
		if binary, err = exec.LookPath("containerd"); err != nil {
			noskip.Skip(t, "no containerd: %v", err)
		}
	}
	// Not below t.TempDir: the path of a socket is short, and overlayfs needs a disk. Not in /var: tests of
	// others expect no mounts there.
	dir, err := os.MkdirTemp("/srv", "gangrun-ctd-")
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{Socket: filepath.Join(dir, "containerd.sock"), t: t, dir: dir, binary: binary}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), fmt.Appendf(nil, config, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	d.Restart()
	return d
}

// Restart starts the containerd, which does not run, and waits until it answers.
func (d *Daemon) Restart() {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(d.binary, "-c", filepath.Join(d.dir, "config.toml"))
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), startLimit)
	defer cancel()
	for {
		conn, err := net.Dial("unix", d.Socket)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(d.dir, "log"))
			d.t.Fatalf("containerd does not listen: %v\n%s", err, text)
		}
	}
}

// Kill ends the containerd with SIGKILL. Its shims and containers go on.
func (d *Daemon) Kill() {
	d.t.Helper()
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	d.cmd = nil
}

// Shims returns the PIDs of the shims of this containerd.
func (d *Daemon) Shims() (pids []int) {
	for _, pid := range procfs.PIDs() {
		args := procfs.Args(pid)
		if len(args) > 0 && strings.Contains(args[0], "containerd-shim") && strings.Contains(strings.Join(args, " "), d.Socket) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Left returns what there is of containers: shims, mounts of their root directories, and what containerd
// itself knows, if it runs.
func (d *Daemon) Left() (left []string) {
	if d.cmd != nil {
		for _, what := range [][]string{{"containers", "ls", "-q"}, {"snapshots", "ls"}} {
			out, err := exec.Command("ctr", append([]string{"-a", d.Socket, "-n", "gangrun"}, what...)...).CombinedOutput()
			if err != nil {
				left = append(left, fmt.Sprintf("ctr: %v: %s", err, out))
			}
			for line := range strings.Lines(string(out)) {
				if what[0] == "containers" || strings.HasSuffix(strings.TrimSpace(line), "Active") {
					left = append(left, strings.TrimSpace(line))
				}
			}
		}
	}

	for _, pid := range d.Shims() {
		left = append(left, fmt.Sprintf("process %d: %q", pid, procfs.Args(pid)))
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, d.dir) {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return left
}

// close ends the containerd and removes its directories.
func (d *Daemon) close() {
	if d.cmd != nil {
		left := d.Left()
		if len(left) > 0 {
			d.t.Errorf("containerd: left behind:\n%s", strings.Join(left, "\n"))
		}
		_ = d.cmd.Process.Signal(unix.SIGTERM)
		ended := time.AfterFunc(startLimit, func() { _ = d.cmd.Process.Kill() })
		_ = d.cmd.Wait()
		ended.Stop()
		d.cmd = nil
	}
	if left := d.Left(); len(left) > 0 {
		d.t.Errorf("containerd: left behind:\n%s", strings.Join(left, "\n"))
		for _, pid := range d.Shims() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Errorf("containerd: %v", err)
	}
}
