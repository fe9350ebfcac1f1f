// Package containerd runs a containerd on each simulated host, at the usual socket in the host's own
// /run. Images are on the host's own disk and outlive a power-off.
package containerd

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/testcontainerd"
	"github.com/gangrun/gangrun/internal/testhosts"
)

//go:embed start.sh
var startScript string

// limit bounds the start of a containerd.
const limit = 30 * time.Second

// Start starts a containerd on each of some hosts and returns when they listen. They end with their
// hosts.
func Start(hosts ...*testhosts.Host) error {
	binary := os.Getenv(testcontainerd.Binary)
	if binary == "" {
		var err error
		if binary, err = exec.LookPath("containerd"); err != nil {
			return err
		}
	}
	errs := make(chan error)
	for _, h := range hosts {
		go func() { errs <- start(h, binary) }()
	}
	var all error
	for range hosts {
		all = errors.Join(all, <-errs)
	}
	return all
}

func start(h *testhosts.Host, binary string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if out, err := h.Exec(ctx, "bash", "-c", startScript, "start", binary); err != nil {
		return fmt.Errorf("start containerd on %s: %w\n%s", h.Name(), err, out)
	}
	return nil
}

// Kill ends the containerd of a host with SIGKILL. Its shims and containers go on.
func Kill(h *testhosts.Host) error {
	return end(h, func(p testhosts.Process) bool { return len(p.Args) > 0 && filepath.Base(p.Args[0]) == "containerd" })
}

// KillShims ends the shims of a host with SIGKILL.
func KillShims(h *testhosts.Host) error { return end(h, isShim) }

func isShim(p testhosts.Process) bool {
	return len(p.Args) > 0 && strings.HasPrefix(filepath.Base(p.Args[0]), "containerd-shim")
}

func end(h *testhosts.Host, is func(testhosts.Process) bool) error {
	all, err := h.Processes("")
	if err != nil {
		return err
	}
	for _, p := range all {
		if is(p) {
			err = errors.Join(err, unix.Kill(p.PID, unix.SIGKILL))
		}
	}
	return err
}

// Left returns what a host has of containers: shims, containers, and snapshots that are not of images.
func Left(h *testhosts.Host) (left []string, err error) {
	all, err := h.Processes("")
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if isShim(p) {
			left = append(left, fmt.Sprintf("%s: process %d %q", h.Name(), p.PID, p.Args))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := h.Exec(ctx, "sh", "-c", `for n in $(ctr namespaces ls -q); do ctr -n "$n" containers ls -q; ctr -n "$n" snapshots ls | grep -w Active; done; ls -d /tmp/gangrun-box-* /dev/shm/gangrun-layers-* 2>/dev/null; true`)
	for line := range strings.Lines(out) {
		left = append(left, h.Name()+": "+strings.TrimSpace(line))
	}
	return left, err
}
