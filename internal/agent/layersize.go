package agent

import (
	"fmt"
	"os"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
)

const (
	layerShare   = 4        // a layer may take a quarter of the free memory
	minLayerSize = 16 << 20 // but it may always take this many bytes
)

// layerSize returns how many bytes of memory a layer may take.
func layerSize() int64 {
	info, _ := os.ReadFile("/proc/meminfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	free := available(string(info))
	for _, g := range cgroup.MemoryOf(string(own), string(mounts)) {
		if left, ok := g.Left(); ok {
			free = min(free, left)
		}
	}
	return max(minLayerSize, free/layerShare)
}

// available returns MemAvailable of proc_meminfo(5) in bytes. That is how much memory the kernel can give to programs
// without swapping.
func available(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
