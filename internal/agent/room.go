package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A layer may take this part of the memory that is free, and no less than leastRoom bytes.
const (
	roomShare = 4
	leastRoom = 16 << 20
)

// layerRoom returns how much a layer may hold, in bytes of memory.
func layerRoom() int64 {
	info, _ := os.ReadFile("/proc/meminfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	free := available(string(info))
	for _, g := range memoryGroups(string(own), string(mounts)) {
		if left, ok := g.left(); ok {
			free = min(free, left)
		}
	}
	return max(leastRoom, free/roomShare)
}

// available returns what the kernel could give without swapping, in bytes: MemAvailable
// of proc_meminfo(5).
func available(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// left returns how much memory a control group, or one above it, may still take, and
// whether any of them has a limit.
func (g memoryGroup) left() (least int64, limited bool) {
	limit, usage := "memory.max", "memory.current"
	if g.first {
		limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
	}
	number := func(dir, name string) (int64, bool) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return n, err == nil // "max" is no number
	}
	for dir := g.dir; strings.HasPrefix(dir, g.mount); dir = filepath.Dir(dir) {
		most, ok := number(dir, limit)
		used, known := number(dir, usage)
		if left := max(0, most-used); ok && known && (!limited || left < least) {
			least, limited = left, true
		}
		if dir == "/" {
			break
		}
	}
	return least, limited
}
