package container

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
)

// usedLabel is a label of the images that this package has brought to this host: when one was last used.
const usedLabel = "gangrun/used"

// usedEvery is the accuracy of usedLabel.
const usedEvery = time.Minute

// nowUsed is a value of usedLabel.
func nowUsed() string { return time.Now().UTC().Format(time.RFC3339) }

// markUsed notes that an image is used, if this package has brought it here.
func (r *Runtime) markUsed(ctx context.Context, image images.Image) {
	last, err := time.Parse(time.RFC3339, image.Labels[usedLabel])
	if err != nil || time.Since(last) < usedEvery {
		return
	}
	image.Labels[usedLabel] = nowUsed()
	_, _ = r.client.ImageService().Update(ctx, image, "labels."+usedLabel)
}

// Unused is an image that this package has brought to this host.
type Unused struct {
	Name  string
	Bytes int64
	Used  time.Time // when it was last used
}

// RemoveUnused removes those images that Import or Pull has brought to this host, that no container uses, and
// that were last used at the time cutoff or before.
func (r *Runtime) RemoveUnused(ctx context.Context, cutoff time.Time) (removed []Unused, err error) {
	ctx = in(ctx, Namespace)
	all, err := r.client.ContainerService().List(ctx)
	if err != nil {
		return nil, err
	}
	service := r.client.ImageService()
	brought, err := service.List(ctx, `labels."`+usedLabel+`"`)
	for _, image := range brought {
		used, parseErr := time.Parse(time.RFC3339, image.Labels[usedLabel])
		if parseErr != nil || used.After(cutoff) {
			continue
		}
		if slices.ContainsFunc(all, func(c containers.Container) bool { return c.Image == image.Name }) {
			continue
		}
		size, _ := client.NewImage(r.client, image).Size(ctx)
		if removeErr := service.Delete(ctx, image.Name, images.SynchronousDelete()); removeErr != nil && !errdefs.IsNotFound(removeErr) {
			err = errors.Join(err, removeErr)
			continue
		}
		removed = append(removed, Unused{Name: image.Name, Bytes: size, Used: used})
	}
	return removed, err
}
