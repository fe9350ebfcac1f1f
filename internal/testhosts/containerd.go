package testhosts

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed containerd.sh
var containerdScript string

// Containerd makes each host run a containerd of its own, from its boot on, at the usual socket
// /run/containerd/containerd.sock, which only the host sees. Images are on the host's disk and are kept
// after a power-off. The program is the one at a path that is the same on all hosts, or, if path is
// empty, that of PATH; the containerd-shim-runc-v2 beside it is used with it.
//
// Containers have cgroups of version 1, below those of their host. A container that shares the host's
// network and PIDs has those of the simulated host.
func Containerd(path string) Option { return func(s *settings) { s.containerd = &path } }

// containerdOf returns the program that hosts run as containerd, "" for none. An error names what this
// machine lacks to run it on hosts.
func containerdOf(s settings) (string, error) {
	if s.containerd == nil {
		return "", nil
	}
	if len(v1Roots()) == 0 {
		return "", errors.New("containerd on simulated hosts takes cgroups of version 1, which this machine lacks")
	}
	var paths []string
	for _, name := range []string{"runc", cmp.Or(*s.containerd, "containerd")} {
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
	_, err := h.Exec(context.Background(), "bash", "-c", `read -r pid </run/containerd.pid && kill -KILL "$pid"
		while [[ -d /proc/$pid ]]; do sleep 0.01; done`)
	return err
}

// StartContainerd starts the host's containerd again, and returns when it listens.
func (h *Host) StartContainerd() error {
	if h.bed.containerd == "" {
		return errors.New("the hosts run no containerd")
	}
	_, err := h.Exec(context.Background(), "bash", "-c", containerdScript, "containerd.sh", h.bed.containerd)
	return err
}

// Shims returns the processes that containerd has started on the host to care for containers, one for
// each.
func (h *Host) Shims() ([]Process, error) {
	all, err := h.Processes("")
	var shims []Process
	for _, p := range all {
		if strings.HasPrefix(p.Name, "containerd-shim") {
			shims = append(shims, p)
		}
	}
	return shims, err
}

// KillShims kills all shims of the host and returns when they have ended. containerd, if it runs, then
// ends the containers.
func (h *Host) KillShims() error {
	return eventually(func() (bool, error) {
		shims, err := h.Shims()
		for _, p := range shims {
			err = errors.Join(err, signal(p.PID, syscall.SIGKILL))
		}
		return len(shims) == 0, err
	})
}
