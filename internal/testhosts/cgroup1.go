package testhosts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// makeV1Cgroups makes a cgroup for the bed in each hierarchy of version 1, and in it one for each host.
// It makes none unless the hosts run containers, whose cgroups are below their host's.
func (b *Bed) makeV1Cgroups() error {
	if !b.settings.containerd {
		return nil
	}
	var all error
	for _, root := range V1Roots() { // runc uses those without controllers, too
		dir := filepath.Join(root, "gangrun-testhosts-"+filepath.Base(b.dir))
		b.v1 = append(b.v1, dir)
		all = errors.Join(all, makeV1(dir))
		for _, h := range b.hosts {
			all = errors.Join(all, makeV1(filepath.Join(dir, h.name)))
		}
	}
	return all
}

// makeV1 makes a cgroup of version 1. That of a cpuset takes processes only once it has CPUs and memory.
func makeV1(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var all error
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
		if errors.Is(err, os.ErrNotExist) {
			continue // no cpuset
		}
		all = errors.Join(all, err, os.WriteFile(filepath.Join(dir, name), value, 0o644))
	}
	return all
}

// v1 returns the host's cgroups of version 1.
func (h *Host) v1() (dirs []string) {
	for _, dir := range h.bed.v1 {
		dirs = append(dirs, filepath.Join(dir, h.name))
	}
	return dirs
}

// V1Roots returns the directories of this process's own cgroups, in all cgroup hierarchies of
// version 1 that have one of the given controllers. Without an argument it returns those in all
// hierarchies.
func V1Roots(controllers ...string) (roots []string) {
	groups, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(groups)) {
		// ID:CONTROLLERS:PATH; without controllers it is version 2, or CONTROLLERS is a name
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] == "" {
			continue
		}
		has := strings.Split(parts[1], ",")
		if len(controllers) > 0 && !slices.ContainsFunc(has, func(c string) bool { return slices.Contains(controllers, c) }) {
			continue
		}
		if root := v1Root(string(mounts), has[0], parts[2]); root != "" {
			roots = append(roots, root)
		}
	}
	return roots
}

// v1Root returns where mountinfo has the cgroup path of the hierarchy of a controller, "" if the hierarchy
// is not mounted.
func v1Root(mountinfo, controller, path string) (root string) {
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(kind) < 3 || kind[0] != "cgroup" || !strings.Contains(","+kind[2]+",", ","+controller+",") {
			continue
		}
		below, err := filepath.Rel(mount[3], path)
		if err != nil || strings.HasPrefix(below, "..") {
			below = "." // the mount shows another part of the hierarchy
		}
		root = filepath.Join(mount[4], below)
	}
	return root
}
