package gpuqueue

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/lease"
)

// claim is what a waiting gang claims on one host.
type claim struct {
	devices []string // the GPUs that the gang could use there
	count   int      // how many of these GPUs the gang claims
	least   int      // how many of these GPUs the gang needs at least to start
	// place is the same for hosts on which the gang could start together; -1 means none.
	place int
}

// claimsFor returns what a gang claims on each host while it waits for a level. Depending on the level, a place is a
// host, a rack, or all hosts together. In every place that could take the gang, the gang claims all GPUs that it could
// use. So it starts in the first place that has room, and no gang that came later can delay it. In places in which it
// could not start, it claims nothing. It claims GPUs that are busy only if no place has enough other GPUs.
func claimsFor(want topology.Want, hosts []job.Host, not job.Excluded) []claim {
	claims := claimsOn(want, hosts, not)
	if !slices.ContainsFunc(claims, func(c claim) bool { return c.place >= 0 }) {
		claims = claimsOn(want, idle(hosts), not)
	}
	return claims
}

func claimsOn(want topology.Want, hosts []job.Host, not job.Excluded) []claim {
	need := want.Ranks * want.GPUs
	claims, places := make([]claim, len(hosts)), map[string]int{}
	var room []int // how many GPUs of each place the ranks could use
	use := make([]int, len(hosts))
	for i, h := range hosts {
		name := ""
		switch want.Locality {
		case job.LocalityIsland, job.LocalityHost:
			name = h.Name
		case job.LocalityRack:
			name = h.Rack
		}
		n, known := places[name]
		if !known {
			n = len(places)
			places[name], room = n, append(room, 0)
		}
		c := &claims[i]
		c.place, c.devices = n, unused(h, not)
		ranks := len(c.devices) / want.GPUs
		if h.Hard {
			ranks = min(ranks, max(0, h.Slots))
		}
		if want.Locality == job.LocalityIsland && ranks >= want.Ranks && slices.ContainsFunc(h.Devices, func(d job.Device) bool { return d.Busy != "" }) {
			if _, err := topology.PlaceGPUs(want, job.Inventory{Hosts: []job.Host{h}}, not); err != nil {
				ranks = 0 // the best GPUs are busy
			}
		}
		use[i] = ranks * want.GPUs
		room[n] += use[i]
	}
	for i := range claims {
		c := &claims[i]
		if room[c.place] < need {
			c.place = -1
			continue
		}
		c.count = min(use[i], need)
		c.least = max(0, need-(room[c.place]-use[i]))
		if want.Locality == job.LocalityIsland && need > 1 && !alike(hosts[i], c.devices) {
			c.count = len(c.devices) // some of the GPUs form no island
		}
	}
	return claims
}

// alike reports whether all pairs of the given devices of a host have the same kind of link.
func alike(h job.Host, devices []string) bool {
	var could []int
	for i, d := range h.Devices {
		if slices.Contains(devices, d.UUID) {
			could = append(could, i)
		}
	}
	var first *job.Link
	for k, i := range could {
		for _, j := range could[:k] {
			link := topology.LinkBetween(h, i, j)
			if first == nil {
				first = &link
			} else if *first != link {
				return false
			}
		}
	}
	return true
}

// unused returns the GPUs of a host that are free and not excluded.
func unused(h job.Host, not job.Excluded) []string {
	var uuids []string
	states := topology.DeviceStates(h)
	for i, d := range h.Devices {
		if states[i] == topology.DeviceFree && !not.Device(h.Name, d) && len(uuids) < lease.MaxDevices {
			uuids = append(uuids, d.UUID)
		}
	}
	return uuids
}

// idle returns the hosts as they are if no GPU is busy.
func idle(hosts []job.Host) []job.Host {
	hosts = slices.Clone(hosts)
	for i := range hosts {
		hosts[i].Devices = slices.Clone(hosts[i].Devices)
		for j := range hosts[i].Devices {
			hosts[i].Devices[j].Busy = ""
		}
	}
	return hosts
}
