package probe

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/pattern"
	"github.com/gangrun/gangrun/topology/nvml"
)

var (
	listedGPU = pattern.New(`^GPU \d+: .*\(UUID: (GPU-[0-9A-Za-z-]+)\)`)
	listedMIG = pattern.New(`^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[0-9A-Za-z/-]+)\)`)
)

// fillInstances sets the profiles and UUIDs of MIG devices from the output of "nvidia-smi -L". It reports
// whether it has found those of every device.
func fillInstances(devices []nvml.Device, text string) bool {
	type listed struct{ profile, uuid string }
	found := map[string]map[int]listed{} // by UUID of the GPU
	gpu := ""
	for line := range strings.Lines(text) {
		if m := listedGPU().FindStringSubmatch(line); m != nil {
			gpu = m[1]
			found[gpu] = map[int]listed{}
		} else if m := listedMIG().FindStringSubmatch(line); m != nil && gpu != "" {
			if index, err := strconv.Atoi(m[2]); err == nil {
				found[gpu][index] = listed{m[1], m[3]}
			}
		}
	}
	all := true
	for d := range devices {
		for i := range devices[d].Instances {
			instance := &devices[d].Instances[i]
			l, ok := found[devices[d].UUID][instance.Index]
			if !ok {
				all = false
				continue
			}
			instance.Profile, instance.UUID = l.profile, l.uuid
		}
	}
	return all
}
