package job

import (
	"fmt"
	"slices"
	"strings"
)

// Rank says where one rank of a gang runs.
type Rank struct {
	Rank    int      `json:"rank"`
	Host    string   `json:"host"`
	Devices []string `json:"devices"` // UUIDs of its GPUs
	CPUs    string   `json:"cpus"`    // the CPUs to which the rank is bound, as in "0-3,8"; empty if it is not bound
	// LocalRank is the number of this rank among the ranks on its host. LocalSize is the number of ranks on its
	// host. Node is the number of the host in the gang.
	LocalRank int `json:"local_rank"`
	LocalSize int `json:"local_size"`
	Node      int `json:"node"`
}

// Placement is where every rank of a gang runs, in rank order.
type Placement struct {
	Ranks []Rank `json:"ranks"`
	// Hosts are the hosts that the gang uses, in the order of Rank.Node.
	Hosts []Host `json:"hosts"`
}

// On returns the ranks that are placed on host, in rank order.
func (p Placement) On(host string) []Rank {
	var ranks []Rank
	for _, r := range p.Ranks {
		if r.Host == host {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Explanation is why a placement was chosen, or why there is none.
type Explanation struct {
	Why []string `json:"why"`
	// Oversubscribed is set if the gang has more ranks than its hosts have cores.
	Oversubscribed *Oversubscription `json:"oversubscribed,omitempty"`
}

// Oversubscription is how many ranks share how many cores.
type Oversubscription struct {
	Ranks int `json:"ranks"`
	Cores int `json:"cores"`
}

// String describes the oversubscription in a sentence without a full stop.
func (o Oversubscription) String() string {
	ranks, cores := "ranks", "cores"
	if o.Ranks == 1 {
		ranks = "rank"
	}
	if o.Cores == 1 {
		cores = "core"
	}
	return fmt.Sprintf("%d %s share %d %s", o.Ranks, ranks, o.Cores, cores)
}

// Excluded names hosts and GPUs that a gang must not use.
type Excluded struct {
	Hosts []string `json:"hosts,omitempty"`
	// Devices are names of devices as DeviceID returns them.
	Devices []string `json:"devices,omitempty"`
}

// Empty reports whether nothing is excluded.
func (e Excluded) Empty() bool { return len(e.Hosts) == 0 && len(e.Devices) == 0 }

// Device reports whether a gang must not use a device of a host. It must not if the device, the GPU to which
// the device belongs, or the host is excluded.
func (e Excluded) Device(host string, d Device) bool {
	if slices.Contains(e.Hosts, host) {
		return true
	}
	if len(e.Devices) == 0 {
		return false
	}
	return slices.Contains(e.Devices, DeviceID(host, d.UUID)) || d.GPU != "" && slices.Contains(e.Devices, DeviceID(host, d.GPU))
}

// IsUUID reports whether text has the form of the UUIDs that NVIDIA's driver gives to GPUs and MIG
// instances, which are unique everywhere.
func IsUUID(text string) bool {
	for _, kind := range []string{"GPU-", "MIG-"} {
		if rest, ok := strings.CutPrefix(text, kind); ok && rest != "" && rest[0] != '/' {
			return true
		}
	}
	return false
}

// DeviceID returns a name of a GPU that is unique among all hosts. It is the GPU's UUID. If the
// driver reports no UUID, it is the host and the index, as in "h1/GPU0".
func DeviceID(host, uuid string) string {
	if IsUUID(uuid) {
		return uuid
	}
	return host + "/" + uuid
}
