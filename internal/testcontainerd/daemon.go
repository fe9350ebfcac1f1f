// Package testcontainerd runs a containerd for one test. It needs root.
package testcontainerd

import (
	"context"
	"errors"
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
)

// Binary is the name of an environment variable. If it is set, its value is the path of the
// containerd to use; otherwise tests use the one in PATH.
const Binary = "GANGRUN_TEST_CONTAINERD"

// Daemon is a containerd with directories and a socket of its own.
type Daemon struct {
	Socket string
	t      testing.TB
	dir    string
	lock   *os.File // locked as long as the process of the test lives
	binary string
	uid    int       // of the user in whose namespace it runs; 0 means none
	cmd    *exec.Cmd // nil if the containerd does not run
}

// config switches off the plugins of containerd that tests do not use, or that need something which
// a test machine may lack.
const config = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt",
  "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"]
[grpc]
  address = "%[1]s/containerd.sock"
[ttrpc]
  address = "%[1]s/containerd.sock.ttrpc"
`

// startLimit bounds the start and the end of a containerd.
const startLimit = time.Minute

// Start starts a containerd. When the test ends, the containerd ends, too, and the test fails if a
// container is left.
func Start(t testing.TB) *Daemon {
	t.Helper()
	return start(t, 0)
}

// StartRootless is like Start, but starts a rootless containerd: it runs in a user namespace whose root is
// the user uid of this machine.
func StartRootless(t testing.TB, uid int) *Daemon {
	t.Helper()
	return start(t, uid)
}

func start(t testing.TB, uid int) *Daemon {
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
	dir, lock, err := claim()
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{Socket: filepath.Join(dir, socketName), t: t, dir: dir, lock: lock, binary: binary, uid: uid}
	t.Cleanup(d.close)
	path := filepath.Join(dir, configName)
	if err := errors.Join(os.WriteFile(path, fmt.Appendf(nil, config, dir), 0o600), os.Chown(path, uid, uid), os.Chown(dir, uid, uid)); err != nil {
		t.Fatal(err)
	}
	d.Restart()
	return d
}

// Restart starts the containerd again after Kill, and waits until it answers.
func (d *Daemon) Restart() {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	argv := []string{d.binary, "-c", filepath.Join(d.dir, configName)}
	if d.uid != 0 { // containerd 1.6 has the sockets of its shims below /run, whatever its configuration says
		argv = append([]string{"sh", "-ec", `mount -t tmpfs tmpfs /run; exec "$@"`, "sh"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(d.binary)+":"+os.Getenv("PATH")) // its shim may be beside it
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if d.uid != 0 {
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: d.uid, Size: 1}, {ContainerID: 1, HostID: 100_000, Size: 65_536}}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = ids, ids, true
		cmd.SysProcAttr.Credential = &syscall.Credential{}
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.cmd = cmd
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
			text, _ := os.ReadFile(filepath.Join(d.dir, logName))
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

// close ends the containerd and removes its directories. The test fails if something of containers is left.
func (d *Daemon) close() {
	var left []string
	if d.cmd != nil {
		left = d.Left()
		_ = d.cmd.Process.Signal(unix.SIGTERM)
		ended := time.AfterFunc(startLimit, func() { _ = d.cmd.Process.Kill() })
		_ = d.cmd.Wait()
		ended.Stop()
		d.cmd = nil
	}
	if left = append(left, d.Left()...); len(left) > 0 {
		d.t.Errorf("containerd: left behind:\n%s", strings.Join(left, "\n"))
	}
	if err := errors.Join(sweep(d.dir), d.lock.Close()); err != nil {
		d.t.Errorf("containerd: %v", err)
	}
}
