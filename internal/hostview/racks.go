package hostview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
)

// rack has the hosts of one rack, grouped by their switches. The order is that of the list of hosts.
type rack struct {
	name     string
	switches []rackSwitch
}

type rackSwitch struct {
	name  string
	hosts []job.Host
}

// byRack groups hosts by rack and switch. An empty name means that the rack or switch is not known.
func byRack(hosts []job.Host) []rack {
	var racks []rack
	rackAt, switchAt := map[string]int{}, map[[2]string]int{}
	for _, h := range hosts {
		r, ok := rackAt[h.Rack]
		if !ok {
			r = len(racks)
			rackAt[h.Rack] = r
			racks = append(racks, rack{name: h.Rack})
		}
		key := [2]string{h.Rack, h.Switch}
		s, ok := switchAt[key]
		if !ok {
			s = len(racks[r].switches)
			switchAt[key] = s
			racks[r].switches = append(racks[r].switches, rackSwitch{name: h.Switch})
		}
		racks[r].switches[s].hosts = append(racks[r].switches[s].hosts, h)
	}
	return racks
}

// gpuCount says how many GPUs a host has, and how many of them are free. A GPU that is cut into MIG instances does not
// count, but each of its instances does.
func gpuCount(h job.Host) string {
	states, _ := gpuStates(h)
	n := tally(states)
	all := len(states) - n[topology.DeviceCut]
	switch {
	case all == 0:
		return "no GPUs known"
	case n[topology.DeviceFree] == all:
		return text.Count(all, "GPU") + ", all free"
	}
	text := fmt.Sprintf("%s, %d free", text.Count(all, "GPU"), n[topology.DeviceFree])
	if n[topology.DeviceBusy] > 0 {
		text += fmt.Sprintf(", %d busy", n[topology.DeviceBusy])
	}
	if n[topology.DeviceSick] > 0 {
		text += fmt.Sprintf(", %d sick", n[topology.DeviceSick])
	}
	return text
}

// islandText describes the islands of a host, as in "2 islands of 4 (NV2), SYS between".
func islandText(h job.Host) string {
	islands := topology.Islands(h)
	if len(h.Links) == 0 || len(islands) == 0 {
		if len(h.Devices) > 1 {
			return "links not known"
		}
		return ""
	}
	of := islandOf(h, islands)
	inside := linksAmong(h, func(a, b int) bool { return of[a] == of[b] })
	between := linksAmong(h, func(a, b int) bool { return of[a] != of[b] })
	var sizes []string
	for _, island := range islands {
		if size := strconv.Itoa(len(island)); !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
	}
	text := text.Count(len(islands), "island") + " of " + strings.Join(sizes, " and ")
	if len(inside) > 0 {
		text += " (" + linkList(inside) + ")"
	}
	if len(between) > 0 {
		text += ", " + linkList(between) + " between"
	}
	return text
}

// islandOf returns the island of each device. It is -1 if the device is in none.
func islandOf(h job.Host, islands [][]int) []int {
	of := make([]int, len(h.Devices))
	for i := range of {
		of[i] = -1
	}
	for k, island := range islands {
		for _, i := range island {
			of[i] = k
		}
	}
	return of
}
