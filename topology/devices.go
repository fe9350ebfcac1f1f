package topology

import (
	"slices"
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
)

// Labels returns short names of the devices of a host: GPU0, GPU1 and so on, and GPU0:1 for
// a MIG instance, where 1 is its number within its GPU.
func Labels(h job.Host) []string {
	labels := make([]string, len(h.Devices))
	instances := map[string]int{}
	for i, d := range h.Devices {
		labels[i] = "GPU" + strconv.Itoa(d.Index)
		if d.GPU != "" && d.GPU != d.UUID {
			labels[i] += ":" + strconv.Itoa(instances[d.GPU])
			instances[d.GPU]++
		}
	}
	return labels
}

// DeviceState says whether a gang may use a device.
type DeviceState int

const (
	DeviceFree DeviceState = iota
	DeviceBusy             // another program or gang uses it
	DeviceSick             // the device has a fault, or the GPU to which it belongs has one
	DeviceCut              // a GPU that is divided into MIG instances, which are devices of their own
)

// DeviceStates returns the state of each device of a host.
func DeviceStates(h job.Host) []DeviceState {
	states := make([]DeviceState, len(h.Devices))
	sick := map[string]bool{}
	for i, d := range h.Devices {
		states[i] = DeviceCut
		sick[d.UUID] = d.Sick != ""
	}
	for _, i := range Leaves(h) {
		switch d := h.Devices[i]; {
		case d.Sick != "" || sick[d.GPU]:
			states[i] = DeviceSick
		case d.Busy != "":
			states[i] = DeviceBusy
		default:
			states[i] = DeviceFree
		}
	}
	return states
}

// GPUsPerRank returns how many GPUs each rank gets on these hosts. If wanted is not negative, the result is
// wanted. Otherwise it is 1 if any of the hosts has GPUs, and 0 if none has.
func GPUsPerRank(wanted int, hosts []job.Host) int {
	switch {
	case wanted >= 0:
		return wanted
	case slices.ContainsFunc(hosts, func(h job.Host) bool { return len(h.Devices) > 0 }):
		return 1
	}
	return 0
}
