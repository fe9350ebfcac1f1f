package agent

import (
	"fmt"
	"os"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
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
	for _, g := range cgroup.MemoryOf(string(own), string(mounts)) {
		if left, ok := g.Left(); ok {
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
