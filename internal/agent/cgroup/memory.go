package cgroup

import (
	"path/filepath"
	"slices"
	"strings"
)

// Memory is a control group that limits the memory of a process.
type Memory struct {
	Dir   string
	Mount string // the path at which the hierarchy is mounted
	V1    bool   // the hierarchy is of version 1
}

// MemoryOf returns the control groups for the memory of a process. own is the text of its /proc/PID/cgroup, and
// mounts the text of its /proc/PID/mountinfo.
func MemoryOf(own, mounts string) []Memory { return groupsOf(own, mounts, "memory") }

// groupsOf returns the control groups of a process that may have a controller.
func groupsOf(own, mounts, controller string) (groups []Memory) {
	for mount := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(strings.TrimSpace(mount), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		first := kind[0] != "cgroup2"
		if first && (kind[0] != "cgroup" || !slices.Contains(strings.Split(kind[2], ","), controller)) {
			continue
		}
		for line := range strings.Lines(own) {
			group := strings.SplitN(strings.TrimSpace(line), ":", 3) // see cgroups(7)
			if len(group) < 3 || first != slices.Contains(strings.Split(group[1], ","), controller) || !first && group[1] != "" {
				continue
			}
			path := strings.TrimPrefix(group[2], strings.TrimSuffix(fields[3], "/"))
			groups = append(groups, Memory{filepath.Join(fields[4], path), fields[4], first})
		}
	}
	return groups
}

// Left returns how many bytes of memory the group may still take. The limit of the group and the limits of the
// groups above it count. limited is false if none of these groups has a limit.
func (g Memory) Left() (least int64, limited bool) {
	limit, usage := "memory.max", "memory.current"
	if g.V1 {
		limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
	}
	for dir := g.Dir; strings.HasPrefix(dir, g.Mount); dir = filepath.Dir(dir) {
		most, ok := numberIn(dir, limit)
		used, known := numberIn(dir, usage)
		used = max(0, used-g.reclaimable(dir))
		if left := max(0, most-used); ok && known && (!limited || left < least) {
			least, limited = left, true
		}
		if dir == "/" {
			break
		}
	}
	return least, limited
}
