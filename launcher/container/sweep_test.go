package container_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/launcher/container"
)

// ended returns the Owner of a process that has ended.
func ended(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	owner := container.Owner(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil || owner == "" {
		t.Fatalf("%q, %v", owner, err)
	}
	return owner
}

// sweep removes what dead owners have left. It returns what a dry Sweep has reported before.
func (b *bed) sweep(t *testing.T) container.Swept {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	would, err := b.runtime.Sweep(ctx, true)
	if err != nil {
		t.Error(err)
	}
	has, err := b.runtime.Sweep(ctx, false)
	if err != nil || len(has.Containers) != len(would.Containers) || has.Leases != would.Leases {
		t.Errorf("removed %+v, %v; announced %+v", has, err, would)
	}
	return has
}

// TestSweep checks that the containers of killed agents are removed, even if their shim or containerd was killed, too.
func TestSweep(t *testing.T) {
	b := newBed(t)
	alive := b.runtime.Owner
	for name, harm := range map[string]func(){
		"alive": func() {},
		"shim killed": func() {
			for _, pid := range b.Shims() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		},
		"containerd restarted": func() { b.Kill(); b.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			b.runtime.Owner = ended(t)
			defer func() { b.runtime.Owner = alive }()
			c, err := b.start(t, container.Spec{}, "sleep 100")
			if err != nil {
				t.Fatal(err)
			}
			harm()
			if got := b.sweep(t).Containers; len(got) != 1 || got[0].ID != c.ID || got[0].Labels["gangrun/test"] != "yes" {
				t.Errorf("removed %+v", got)
			}
			// containerd itself soon removes what a killed shim has left.
			for deadline := time.Now().Add(2 * time.Minute); len(b.Left()) > 0 && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
			if left := b.Left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if got := b.sweep(t).Containers; len(got) != 0 {
				t.Errorf("removed once more: %+v", got)
			}
		})
	}
	t.Run("owner alive", func(t *testing.T) {
		c, err := b.start(t, container.Spec{}, "sleep 100")
		if err != nil {
			t.Fatal(err)
		}
		if got := b.sweep(t).Containers; len(got) != 0 {
			t.Errorf("removed %+v", got)
		}
		select {
		case <-c.Exited():
			t.Error("the container was ended")
		default:
		}
	})
}

// TestSweepLeases checks the lease of a process that was killed while it made a container. The snapshot must be
// removed, too.
func TestSweepLeases(t *testing.T) {
	b := newBed(t)
	c, err := client.New(b.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := namespaces.WithNamespace(t.Context(), container.Namespace)
	for name, owner := range map[string]string{"dead": ended(t), "alive": container.Owner(os.Getpid()), "elsewhere": "pid:[1] 17 4711"} {
		l, err := c.LeasesService().Create(ctx, leases.WithID(name), leases.WithLabel("gangrun/process", owner))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.SnapshotService("overlayfs").Prepare(leases.WithLease(ctx, l.ID), name, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.sweep(t); got.Leases != 1 || len(got.Containers) != 0 {
		t.Errorf("removed %+v", got)
	}
	left, err := c.LeasesService().List(ctx)
	if err != nil || len(left) != 2 {
		t.Errorf("there are the leases %v, %v", left, err)
	}
	for name, want := range map[string]bool{"dead": false, "alive": true, "elsewhere": true} {
		if _, err := c.SnapshotService("overlayfs").Stat(ctx, name); (err == nil) != want {
			t.Errorf("snapshot %s: %v", name, err)
		}
		_ = c.LeasesService().Delete(ctx, leases.Lease{ID: name}, leases.SynchronousDelete)
	}
}
