package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// snapshotter makes the root directories of containers.
const snapshotter = "overlayfs"

// Container is a running container.
type Container struct {
	ID        string
	PID       int // the PID of its first process, on the host
	User      User
	namespace string
	container client.Container
	task      client.Task
	exited    chan struct{}
	dead      *atomic.Bool // the first process has ended: the connection is not merely broken
	log       string
}

// Exited returns a channel. The channel is closed when the first process of the container has ended, or
// when the connection to containerd is broken.
func (c *Container) Exited() <-chan struct{} { return c.exited }

// Start starts a container and returns when its first process runs. If Start fails, it leaves nothing of the
// container.
func (r *Runtime) Start(ctx context.Context, s Spec) (started *Container, err error) {
	ctx = in(ctx, s.Image.Namespace)
	s.rootless = r.Rootless
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	labels := map[string]string{ownerLabel: r.Owner}
	maps.Copy(labels, s.Labels)
	making, done, err := r.lease(ctx) // with which Sweep finds a snapshot without a container
	if err != nil {
		return nil, err
	}
	defer done()
	made, err := r.client.NewContainer(making, s.ID,
		client.WithImage(s.Image.image), client.WithImageConfigLabels(s.Image.image), client.WithAdditionalContainerLabels(labels),
		client.WithSnapshotter(snapshotter), client.WithNewSnapshot(s.ID, s.Image.image), client.WithNewSpec(options...))
	if err != nil {
		// The snapshot may have been made before the container failed.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		if removeErr := r.client.SnapshotService(snapshotter).Remove(undo, s.ID); removeErr != nil && !errdefs.IsNotFound(removeErr) {
			err = errors.Join(err, removeErr)
		}
		return nil, err
	}
	c := &Container{ID: s.ID, namespace: s.Image.Namespace, container: made, dead: new(atomic.Bool), log: s.Log}
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
			defer cancel()
			err = errors.Join(err, c.End(undo))
		}
	}()
	spec, err := made.Spec(ctx)
	if err != nil {
		return nil, err
	}
	c.User = User{UID: spec.Process.User.UID, GID: spec.Process.User.GID, Groups: spec.Process.User.AdditionalGids}
	creating, cancel := lasting(ctx) // a shim whose start is interrupted may be left behind
	defer cancel()
	if c.task, err = made.NewTask(creating, cio.LogFile(s.Log)); err != nil {
		return nil, err
	}
	ended, err := c.task.Wait(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	c.exited = make(chan struct{})
	go func() { // ends with the container, or with the connection
		status := <-ended
		c.dead.Store(status.Error() == nil)
		close(c.exited)
	}()
	if err := c.task.Start(ctx); err != nil {
		return nil, err
	}
	c.PID = int(c.task.Pid())
	return c, nil
}

// endLimit bounds how long the end of a container may take whose start has failed.
const endLimit = 10 * time.Second

// lasting returns a context that ends endLimit later than ctx, or when cancel is called.
func lasting(ctx context.Context) (late context.Context, cancel context.CancelFunc) {
	late, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(endLimit):
			end()
		case <-late.Done():
		}
	})
	return late, func() { stop(); end() }
}

// Said returns the end of what the first process of the container has printed.
func (c *Container) Said() string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return ""
	}
	const most = 2 << 10
	return strings.TrimSpace(string(data[max(0, len(data)-most):]))
}

// End kills every process of the container, and removes the container with everything that was
// written in it.
func (c *Container) End(ctx context.Context) error {
	return remove(in(ctx, c.namespace), c.container, c.task, c)
}

// remove kills every process of a container and removes it. task is nil if it has no processes. It tries
// again until ctx ends: a shim that was killed, or a containerd that was started again, needs a moment.
// started is nil for a container that another process has started.
func remove(ctx context.Context, container client.Container, task client.Task, started *Container) error {
	for {
		err := removeOnce(ctx, container, task, started)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(removeEvery):
		case <-ctx.Done():
			return fmt.Errorf("remove container %s: %w", container.ID(), err)
		}
	}
}

// removeEvery is how often remove tries.
const removeEvery = 50 * time.Millisecond

// exitLimit bounds how long removeOnce waits for the end of a process that it has killed.
const exitLimit = time.Second

func removeOnce(ctx context.Context, container client.Container, task client.Task, started *Container) error {
	known := task != nil // containerd knows that the container has processes
	if known {
		var killErr error
		if started == nil || !started.dead.Load() { // else the shim has killed what the first process has left
			killErr = task.Kill(ctx, unix.SIGKILL, client.WithKillAll)
		}
		if killErr == nil && started != nil && started.exited != nil {
			select {
			case <-started.exited:
			case <-time.After(exitLimit):
			case <-ctx.Done():
			}
		}
		_, err := task.Delete(ctx, client.WithProcessKill)
		if known = !errdefs.IsNotFound(err); known && err != nil {
			return errors.Join(killErr, err)
		}
	}
	if !known {
		if err := endForgotten(ctx, container.ID()); err != nil {
			return err
		}
	}
	cgroups, err := cgroupsOf(ctx, container)
	if err := errors.Join(err, endCgroups(cgroups)); err != nil {
		return err
	}
	if err := container.Delete(ctx, client.WithSnapshotCleanup); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}
