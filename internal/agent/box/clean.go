package box

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/container"
)

// EndDead removes the containers of those agents on this host that were killed, and the directories of these
// containers.
func EndDead() {
	if removeDirs() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	runtime, err := container.Open(ctx, container.Sockets(os.Getenv)...)
	if err != nil {
		return // the next agent here tries again if it finds other directories, and gangrun clean tries again, too
	}
	defer runtime.Close()
	_, _ = runtime.Sweep(ctx, false)
}

// removeDirs removes the directories of agents that were killed, and returns how many it has removed.
func removeDirs() int {
	return tempfiles.RemoveUnlocked(dirPrefix, os.RemoveAll) + tempfiles.RemoveUnlocked(memoryPrefix, os.RemoveAll)
}

// Clean removes what is left of the containers of killed agents, and returns what it has removed.
//
// Clean also removes each image that gangrun has brought to this host, if no container uses it and its last use was
// at least minAge ago. If minAge is negative, Clean keeps all images. If dry is true, Clean removes nothing, and
// returns the containers, and the number of containerd's leases, that it would remove. The result then has no images
// and no directories.
//
// sockets are the paths at which Clean looks for containerd's socket. If none of them exists, or if this
// user may not open the one that exists, then the user has no containers, and Clean returns no error.
func Clean(ctx context.Context, sockets []string, minAge time.Duration, dry bool) (c job.Cleaned, err error) {
	runtime, err := container.Open(ctx, sockets...)
	if e, ok := errors.AsType[*container.UnavailableError](err); ok && (e.Missing || e.Forbidden) {
		err = nil
	}
	if runtime != nil {
		defer runtime.Close()
		swept, sweepErr := runtime.Sweep(ctx, dry)
		for _, left := range swept.Containers {
			c.Containers = append(c.Containers, job.CleanedContainer{ID: left.ID, Gang: left.Labels[labelGang]})
		}
		c.Leases = swept.Leases
		err = sweepErr
		if minAge >= 0 && !dry {
			images, imagesErr := runtime.RemoveUnused(ctx, time.Now().Add(-minAge))
			for _, i := range images {
				c.Images = append(c.Images, job.CleanedImage{Name: i.Name, Bytes: i.Bytes, Used: i.Used})
			}
			err = errors.Join(err, imagesErr)
		}
	}
	if !dry {
		c.Dirs = removeDirs()
	}
	return c, err
}
