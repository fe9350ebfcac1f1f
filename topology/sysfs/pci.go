package sysfs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

var (
	rootName = regexp.MustCompile(`^pci[0-9a-f]{4,8}:[0-9a-f]{2}$`)
	busID    = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
)

// device is a PCI device, and the path to it.
type device struct {
	root  string   // the path of its host bridge
	way   []string // bus IDs from the host bridge down to the device: root port, ports of switches, device
	numa  int      // -1 if it is not known
	cpus  string   // list of the CPUs close to it
	class string   // as in 0x030200
	maker string   // as in 0x10de
}

// device reads a device with the given bus ID.
func (r *reader) device(name string) (device, bool) {
	at := r.link("bus/pci/devices/" + name)
	root, way, ok := split(at)
	if !ok {
		return device{}, false
	}
	return device{
		root: root, way: way, numa: number(r.text(at + "/numa_node")), cpus: r.text(at + "/local_cpulist"),
		class: r.text(at + "/class"), maker: r.text(at + "/vendor"),
	}, true
}

// split splits the path of a device below /sys after the last host bridge. A bridge that has a PCI domain of
// its own (VMD) counts as a host bridge.
func split(at string) (root string, way []string, ok bool) {
	parts := strings.Split(at, "/")
	last := -1
	for i, part := range parts {
		if rootName.MatchString(part) {
			last = i
		}
	}
	if last < 0 {
		return "", nil, false
	}
	for _, part := range parts[last+1:] {
		if !busID.MatchString(part) {
			break // this is a part of a function of the device
		}
		way = append(way, part)
	}
	return strings.Join(parts[:last+1], "/"), way, len(way) > 0
}

// GPUs returns the PCI bus IDs of the NVIDIA GPUs, in the order in which NVML numbers them.
func (m Machine) GPUs() []string {
	const nvidia = "0x10de"
	var ids []string
	for id, d := range m.pci {
		// VGA controllers and 3D controllers; not NVSwitches, audio or USB functions.
		if d.maker == nvidia && (strings.HasPrefix(d.class, "0x0300") || strings.HasPrefix(d.class, "0x0302")) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // a longer domain is a higher one
		}
		return strings.Compare(a, b)
	})
	return ids
}

// Link returns the kind of path between two PCI devices, in the terms of "nvidia-smi topo -m". a and b are bus
// IDs, as in 0000:3b:00.0. Link returns "" if one of the devices is not known, or if a and b are the same. If
// the NUMA nodes are not known, it returns the kind of the longest path that is possible.
func (m Machine) Link(a, b string) job.Link {
	x, ok := m.pci[a]
	y, also := m.pci[b]
	switch {
	case !ok || !also || a == b:
		return ""
	case x.root != y.root:
		if n := m.numa(a); n != "" && n == m.numa(b) {
			return job.LinkNODE
		}
		return job.LinkSYS
	}
	shared := 0
	for shared < min(len(x.way), len(y.way)) && x.way[shared] == y.way[shared] {
		shared++
	}
	switch below := max(len(x.way), len(y.way)) - shared; {
	case slot(x.way[len(x.way)-1]) == slot(y.way[len(y.way)-1]):
		return job.LinkPIX // two functions of one device
	case shared == 0:
		return job.LinkPHB
	case below <= 2:
		return job.LinkPIX // the bridge that both share is a switch, and each is at a port of this switch
	default:
		return job.LinkPXB
	}
}

// slot returns a bus ID without the function.
func slot(id string) string {
	before, _, _ := strings.Cut(id, ".")
	return before
}

// numa returns the number of a device's NUMA node. If the firmware does not report the node and there is only
// one, it returns the number of that node.
func (m Machine) numa(id string) string {
	d, ok := m.pci[id]
	switch {
	case !ok:
		return ""
	case d.numa >= 0:
		return text(d.numa)
	case len(m.Nodes) == 1:
		return text(m.Nodes[0].ID)
	}
	return ""
}
