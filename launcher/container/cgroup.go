package container

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// cgroupsOf returns the directories of the cgroups that a container has or may have had: one in each mounted
// hierarchy. It returns none if gangrun asked for no cgroup.
func cgroupsOf(ctx context.Context, container client.Container) (dirs []string, err error) {
	spec, err := container.Spec(ctx)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || spec.Linux == nil || !filepath.IsAbs(spec.Linux.CgroupsPath) || filepath.Base(spec.Linux.CgroupsPath) != container.ID() {
		return nil, err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	for _, m := range mounts {
		dirs = append(dirs, filepath.Join(m.Mountpoint, spec.Linux.CgroupsPath))
	}
	return dirs, err
}

// endCgroups kills the processes in cgroups, and removes the cgroups with those inside them. A runtime whose shim
// was killed tries that for less than a second, and so leaves the cgroups of processes that take longer to end.
// The error is EBUSY while there are such processes. A cgroup that this user may not remove stays.
func endCgroups(dirs []string) (all error) {
	for _, dir := range dirs {
		var within []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // most hierarchies have no such cgroup
			if err == nil && d.IsDir() {
				within = append(within, path)
			}
			return err
		})
		for _, path := range slices.Backward(within) {
			killIn(path)
			if err := unix.Rmdir(path); err == unix.EBUSY {
				all = errors.Join(all, &fs.PathError{Op: "rmdir", Path: path, Err: err})
			}
		}
	}
	return all
}

// killIn kills the processes in a cgroup.
func killIn(dir string) {
	procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // else the removal of the cgroup fails
	for _, field := range strings.Fields(string(procs)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL) // else it has ended, or the removal of the cgroup fails
		}
	}
}
