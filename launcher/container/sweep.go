package container

import (
	"context"
	"errors"

	"github.com/containerd/errdefs"
)

// Sweep looks at the containers that have the label, in all namespaces that gangrun uses. It
// removes those for whose labels stale returns true, and returns how many it has removed.
func (r *Runtime) Sweep(ctx context.Context, label string, stale func(labels map[string]string) bool) (removed int, err error) {
	for _, namespace := range searched {
		within := in(ctx, namespace)
		found, listErr := r.client.Containers(within, `labels."`+label+`"`)
		if listErr != nil {
			err = errors.Join(err, listErr)
			continue
		}
		for _, c := range found {
			labels, labelsErr := c.Labels(within)
			if labelsErr != nil || !stale(labels) {
				continue
			}
			task, taskErr := c.Task(within, nil)
			if taskErr != nil && !errdefs.IsNotFound(taskErr) {
				err = errors.Join(err, taskErr)
				continue
			}
			if removeErr := remove(within, c, task, nil); removeErr != nil {
				err = errors.Join(err, removeErr)
				continue
			}
			removed++
		}
	}
	return removed, err
}
