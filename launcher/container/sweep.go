package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"

	"github.com/gangrun/gangrun/internal/procfs"
)

// ownerLabel is the label of every container and lease that this package makes. Its value is an Owner.
const ownerLabel = "gangrun/process"

// Owner returns a text that identifies the process pid of this host. The text has the PID namespace, the PID
// and the start time of the process.
func Owner(pid int) string {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", procfs.Namespace(os.Getpid(), "pid"), pid, stat.Start)
}

// dead reports whether an owner has ended. known is false if that cannot be seen from here, because the owner
// is of another PID namespace.
func dead(owner string) (dead, known bool) {
	var namespace string
	var pid int
	n, err := fmt.Sscan(owner, &namespace, &pid)
	if n != 2 || err != nil || namespace != procfs.Namespace(os.Getpid(), "pid") {
		return false, false
	}
	return Owner(pid) != owner, true
}

// leaseLimit is how long containerd keeps a lease that nobody has ended.
const leaseLimit = 24 * time.Hour

// lease returns a context in which containerd keeps all that is made, until done is called. It then keeps
// only what an image or a container needs.
func (r *Runtime) lease(ctx context.Context) (leased context.Context, done func(), err error) {
	leased, end, err := r.client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(leaseLimit), leases.WithLabel(ownerLabel, r.Owner))
	return leased, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		_ = end(ending) // otherwise Sweep ends it
	}, err
}

// Left is a container whose owner has ended.
type Left struct {
	ID     string
	Labels map[string]string
}

// Swept is what Sweep has removed.
type Swept struct {
	Containers []Left
	Leases     int
}

// Sweep removes the containers whose owners have ended (see Runtime.Owner). It also removes the leases of such
// owners, and the content that these leases protect. If dry is true, Sweep removes nothing, but returns what it
// would remove.
func (r *Runtime) Sweep(ctx context.Context, dry bool) (swept Swept, err error) {
	for _, namespace := range searched {
		within := in(ctx, namespace)
		err = errors.Join(err, r.sweepContainers(within, dry, &swept), r.sweepLeases(within, dry, &swept))
	}
	return swept, err
}

// sweepContainers is Sweep for the containers of one namespace.
func (r *Runtime) sweepContainers(ctx context.Context, dry bool, swept *Swept) error {
	found, all := r.client.Containers(ctx, `labels."`+ownerLabel+`"`)
	for _, c := range found {
		labels, err := c.Labels(ctx)
		if err != nil {
			continue // its owner has removed it
		}
		task, err := c.Task(ctx, nil)
		if err != nil && !errdefs.IsNotFound(err) {
			all = errors.Join(all, err)
			continue
		}
		if gone, known := dead(labels[ownerLabel]); !gone && (known || !abandoned(ctx, c, task)) {
			continue
		}
		if !dry {
			err = remove(ctx, c, task, nil)
		}
		if err == nil || errdefs.IsNotFound(err) {
			swept.Containers = append(swept.Containers, Left{ID: c.ID(), Labels: labels})
		} else {
			all = errors.Join(all, err)
		}
	}
	return all
}

// youngLimit is the age from which on a container has a process, unless it has been abandoned.
const youngLimit = time.Minute

// abandoned reports whether a container has no process any more. If its owner lives, the owner
// removes it.
func abandoned(ctx context.Context, c client.Container, task client.Task) bool {
	info, err := c.Info(ctx, client.WithoutRefreshedMetadata)
	if err != nil || time.Since(info.CreatedAt) < youngLimit {
		return false
	}
	if task == nil {
		return true
	}
	status, err := task.Status(ctx)
	return errdefs.IsNotFound(err) || err == nil && status.Status == client.Stopped
}

// sweepLeases is Sweep for the leases of one namespace.
func (r *Runtime) sweepLeases(ctx context.Context, dry bool, swept *Swept) error {
	service := r.client.LeasesService()
	found, all := service.List(ctx, `labels."`+ownerLabel+`"`)
	for _, l := range found {
		if gone, _ := dead(l.Labels[ownerLabel]); !gone {
			continue
		}
		var err error
		if !dry {
			err = service.Delete(ctx, l, leases.SynchronousDelete)
		}
		if err == nil || errdefs.IsNotFound(err) {
			swept.Leases++
		} else {
			all = errors.Join(all, err)
		}
	}
	return all
}
