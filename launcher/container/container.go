package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// snapshotter makes the root directories of containers.
const snapshotter = "overlayfs"

// Container is a container that runs.
type Container struct {
	ID        string
	PID       int // of its first process, on the host
	namespace string
	container client.Container
	task      client.Task
	exited    chan struct{}
	log       string
}

// Exited returns a channel that is closed when the first process of the container has ended, or when
// the connection to containerd is broken.
func (c *Container) Exited() <-chan struct{} { return c.exited }

// Start starts a container and returns when its first process runs. If it fails, nothing of the
// container is left.
func (r *Runtime) Start(ctx context.Context, s Spec) (started *Container, err error) {
	ctx = in(ctx, s.Image.Namespace)
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	made, err := r.client.NewContainer(ctx, s.ID,
		client.WithImage(s.Image.image), client.WithImageConfigLabels(s.Image.image), client.WithAdditionalContainerLabels(s.Labels),
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
	c := &Container{ID: s.ID, namespace: s.Image.Namespace, container: made, log: s.Log}
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
			defer cancel()
			err = errors.Join(err, c.End(undo))
		}
	}()
	if c.task, err = made.NewTask(ctx, cio.LogFile(s.Log)); err != nil {
		return nil, err
	}
	ended, err := c.task.Wait(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	c.exited = make(chan struct{})
	go func() { <-ended; close(c.exited) }() // ends with the container, or with the connection
	if err := c.task.Start(ctx); err != nil {
		return nil, err
	}
	c.PID = int(c.task.Pid())
	return c, nil
}

// endLimit bounds how long the end of a container may take whose start has failed.
const endLimit = 10 * time.Second

// Said returns the end of what the first process of the container has written.
func (c *Container) Said() string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return ""
	}
	const most = 2 << 10
	return strings.TrimSpace(string(data[max(0, len(data)-most):]))
}

// End kills every process of the container and removes it with all that it has written.
func (c *Container) End(ctx context.Context) error {
	return remove(in(ctx, c.namespace), c.container, c.task, c.exited)
}

// remove kills a task, unless it is nil, and removes its container.
func remove(ctx context.Context, container client.Container, task client.Task, ended <-chan struct{}) error {
	if task != nil {
		if err := kill(ctx, task, ended); err != nil {
			return err
		}
	}
	if err := container.Delete(ctx, client.WithSnapshotCleanup); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove container %s: %w", container.ID(), err)
	}
	return nil
}

// kill kills every process of a task, waits for its end, and removes it. ended is nil for a task that
// another process has started.
func kill(ctx context.Context, task client.Task, ended <-chan struct{}) error {
	for {
		if err := task.Kill(ctx, unix.SIGKILL, client.WithKillAll); err != nil && !errdefs.IsNotFound(err) && !errdefs.IsFailedPrecondition(err) {
			return fmt.Errorf("kill container %s: %w", task.ID(), err)
		}
		if ended != nil {
			select {
			case <-ended: // also if the connection to containerd broke
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, err := task.Delete(ctx, client.WithProcessKill)
		switch {
		case err == nil, errdefs.IsNotFound(err):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("remove the processes of container %s: %w", task.ID(), err)
		}
		select {
		case <-time.After(killEvery):
		case <-ctx.Done():
		}
	}
}

// killEvery is how often processes are killed that are still there.
const killEvery = 50 * time.Millisecond
