package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// The brute force tries every way to place a gang. It has its own scoring, which follows the documentation of
// Cost and of Choice.Level.

// worth returns the score of a link.
func worth(l job.Link) int {
	for i, name := range []job.Link{"SYS", "NODE", "PHB", "PXB", "PIX", "PSB"} {
		if l == name {
			return 10 * (i + 1)
		}
	}
	if len(l) > 2 && l[:2] == "NV" {
		n, _ := strconv.Atoi(string(l[2:]))
		return 100 * n
	}
	return 0
}

func linkOf(h job.Host, a, b int) int {
	if a >= len(h.Links) || b >= len(h.Links[a]) {
		return 0
	}
	return worth(h.Links[a][b])
}

// ringThrough returns the bottleneck of the best ring. It tries every order of the GPUs.
func ringThrough(h job.Host, gpus []int) int {
	if len(gpus) == 1 {
		return NoRing
	}
	best := -1
	rest := slices.Clone(gpus[1:])
	var try func(at, last, low int)
	try = func(at, last, low int) {
		if at == len(rest) {
			best = max(best, min(low, linkOf(h, last, gpus[0])))
			return
		}
		for i := at; i < len(rest); i++ {
			rest[at], rest[i] = rest[i], rest[at]
			try(at+1, rest[at], min(low, linkOf(h, last, rest[at])))
			rest[at], rest[i] = rest[i], rest[at]
		}
	}
	try(0, gpus[0], NoRing)
	return best
}

func linksAmong(h job.Host, gpus []int) (sum int) {
	for i, a := range gpus {
		for _, b := range gpus[i+1:] {
			sum += linkOf(h, a, b)
		}
	}
	return sum
}

func nicsOf(h job.Host, gpus []int) (sum int) {
	for _, g := range gpus {
		near := 5
		for _, nic := range h.NICs {
			if g < len(nic.Links) {
				switch nic.Links[g] {
				case "PSB":
					near = 0
				case "PIX":
					near = min(near, 1)
				case "PXB":
					near = min(near, 2)
				case "PHB":
					near = min(near, 3)
				case "NODE":
					near = min(near, 4)
				}
			}
		}
		sum += near
	}
	return sum
}

// bestPairs returns the sum of the best matching of the GPUs.
func bestPairs(h job.Host, gpus []int) int {
	if len(gpus) < 2 {
		return 0
	}
	best := bestPairs(h, gpus[1:])
	for i := 1; i < len(gpus); i++ {
		rest := append(slices.Clone(gpus[1:i]), gpus[i+1:]...)
		best = max(best, linkOf(h, gpus[0], gpus[i])+bestPairs(h, rest))
	}
	return best
}

// wholeGPUs returns the devices that are not divided into others.
func wholeGPUs(h job.Host) (list []int) {
	for i, d := range h.Devices {
		if !slices.ContainsFunc(h.Devices, func(e job.Device) bool { return e.GPU == d.UUID && e.UUID != d.UUID }) {
			list = append(list, i)
		}
	}
	return list
}

// stays returns the value of free GPUs of a host.
func stays(h job.Host, free []int) int {
	all := wholeGPUs(h)
	kind := func(a, b int) int { return min(100, linkOf(h, a, b)) }
	top := 0
	for _, a := range all {
		for _, b := range all {
			if a != b {
				top = max(top, kind(a, b))
			}
		}
	}
	value := bestPairs(h, free)
	island := map[int]int{} // the lowest GPU of the island of each GPU
	for _, a := range all {
		island[a] = a
	}
	for range all {
		for _, a := range all {
			for _, b := range all {
				if a != b && (top < 30 || kind(a, b) == top) {
					island[a] = min(island[a], island[b])
				}
			}
		}
	}
	for _, a := range all {
		if island[a] == a && !slices.ContainsFunc(all, func(b int) bool { return island[b] == a && !slices.Contains(free, b) }) {
			value++
		}
	}
	if len(free) == len(all) {
		value++
	}
	return value
}

// mayUse returns the GPUs of a host that a gang with each GPUs for a rank may have. If idle is true, it
// includes busy GPUs.
func mayUse(h job.Host, each int, not job.Excluded, idle bool) (list []int) {
	if slices.Contains(not.Hosts, h.Name) {
		return nil
	}
	gone := func(uuid string) bool {
		if strings.HasPrefix(uuid, "GPU-") {
			return slices.Contains(not.Devices, uuid)
		}
		return slices.Contains(not.Devices, h.Name+"/"+uuid)
	}
	for _, i := range wholeGPUs(h) {
		d := h.Devices[i]
		bad := d.Sick != "" || gone(d.UUID) || d.Busy != "" && !idle || each > 1 && d.GPU != "" // a MIG instance
		for _, p := range h.Devices {
			if p.UUID == d.GPU && (p.Sick != "" || gone(p.UUID)) {
				bad = true
			}
		}
		if !bad {
			list = append(list, i)
		}
	}
	return list
}

// subsetsOf returns the subsets of a list.
func subsetsOf(list []int) (all [][]int) {
	for m := range 1 << len(list) {
		var sub []int
		for i, v := range list {
			if m>>i&1 == 1 {
				sub = append(sub, v)
			}
		}
		all = append(all, sub)
	}
	return all
}

// part is what one host gives to a placement, with its scores.
type part struct {
	gpus                   []int
	ring, links, nic, left int
}

func scored(h job.Host, gpus, free []int, size int) part {
	rest := slices.DeleteFunc(slices.Clone(free), func(g int) bool { return slices.Contains(gpus, g) })
	p := part{gpus, ringThrough(h, gpus), linksAmong(h, gpus), nicsOf(h, gpus), stays(h, rest) - stays(h, free)}
	if size == 1 {
		p.nic = 0
	}
	return p
}

// costOf adds up the parts. Host i gives parts[i], or nothing if that is nil.
func costOf(hosts []job.Host, parts []*part) Cost {
	c := Cost{Bottleneck: NoRing}
	racks, switches := map[string]bool{}, map[string]bool{}
	for i, p := range parts {
		if p == nil {
			continue
		}
		racks[hosts[i].Rack] = true
		switches[fmt.Sprintf("%q %q", hosts[i].Rack, hosts[i].Switch)] = true
		c.Hosts++
		c.Bottleneck = min(c.Bottleneck, p.ring)
		c.Links += p.links
		c.NIC += p.nic
		c.Left += p.left
	}
	c.Racks, c.Switches = len(racks), len(switches)
	return c
}

// better compares costs field by field.
func better(a, b Cost) bool {
	x := []int{a.Racks, a.Switches, a.Hosts, -a.Bottleneck, -a.Links, a.NIC, -a.Left}
	y := []int{b.Racks, b.Switches, b.Hosts, -b.Bottleneck, -b.Links, b.NIC, -b.Left}
	return slices.Compare(x, y) < 0
}

// bestIsland reports whether no set of the same size of the host, busy or not, has a better ring, or an equally
// good ring and better links.
func bestIsland(h job.Host, gpus []int, each int, not job.Excluded) bool {
	ring, links := ringThrough(h, gpus), linksAmong(h, gpus)
	for _, sub := range subsetsOf(mayUse(h, each, not, true)) {
		if len(sub) == len(gpus) {
			if l := linksAmong(h, sub); l > links || ring < NoRing {
				if r := ringThrough(h, sub); r > ring || r == ring && l > links {
					return false
				}
			}
		}
	}
	return true
}

// brute returns the lowest cost of all placements, if there is a placement.
func brute(want Want, inventory job.Inventory, not job.Excluded, idle bool) (best Cost, found bool) {
	hosts := inventory.Hosts
	size := want.Ranks * want.GPUs
	ways := make([][]part, len(hosts))
	for i, h := range hosts {
		free := mayUse(h, want.GPUs, not, idle)
		for _, sub := range subsetsOf(free) {
			n := len(sub)
			if n == 0 || n > size || n%want.GPUs != 0 || h.Hard && n/want.GPUs > h.Slots {
				continue
			}
			if n < size && (want.Locality == job.LocalityIsland || want.Locality == job.LocalityHost) {
				continue
			}
			ways[i] = append(ways[i], scored(h, sub, free, size))
		}
	}
	parts := make([]*part, len(hosts))
	var try func(i, left int)
	try = func(i, left int) {
		if left == 0 {
			c := costOf(hosts, parts)
			if want.Locality == job.LocalityRack && c.Racks > 1 || found && !better(c, best) {
				return
			}
			if want.Locality == job.LocalityIsland {
				for j, p := range parts {
					if p != nil && !bestIsland(hosts[j], p.gpus, want.GPUs, not) {
						return
					}
				}
			}
			best, found = c, true
			return
		}
		if i == len(hosts) {
			return
		}
		try(i+1, left)
		for j := range ways[i] {
			if p := &ways[i][j]; len(p.gpus) <= left {
				parts[i] = p
				try(i+1, left-len(p.gpus))
			}
		}
		parts[i] = nil
	}
	try(0, size)
	return best, found
}

// closest returns the best sum of links within sets of the size each, into which GPUs can be divided.
func closest(h job.Host, gpus []int, each int) int {
	if len(gpus) == 0 {
		return 0
	}
	best := 0
	for _, sub := range subsetsOf(gpus[1:]) {
		if len(sub) == each-1 {
			part := append([]int{gpus[0]}, sub...)
			rest := slices.DeleteFunc(slices.Clone(gpus), func(g int) bool { return slices.Contains(part, g) })
			best = max(best, linksAmong(h, part)+closest(h, rest, each))
		}
	}
	return best
}

// bestRound returns the best sum of links along a ring whose links are not weaker than low.
func bestRound(h job.Host, gpus []int, low int) int {
	best := -1
	rest := slices.Clone(gpus[1:])
	var try func(at, last, sum int)
	try = func(at, last, sum int) {
		if at == len(rest) {
			if v := linkOf(h, last, gpus[0]); v >= low {
				best = max(best, sum+v)
			}
			return
		}
		for i := at; i < len(rest); i++ {
			if v := linkOf(h, last, rest[i]); v >= low {
				rest[at], rest[i] = rest[i], rest[at]
				try(at+1, rest[at], sum+v)
				rest[at], rest[i] = rest[i], rest[at]
			}
		}
	}
	try(0, gpus[0], 0)
	return best
}

// bestEffort is NVIDIA's policy of that name for one host, by its description in go-gpuallocator. It divides
// the free GPUs into sets of the given size and one that may be smaller, so that the sum of the link scores
// within the sets is highest. Then it takes the best set of the given size.
func bestEffort(h job.Host, free []int, size int) []int {
	if len(free) < size {
		return nil
	}
	var best [][]int
	top := -1
	var parts [][]int
	var try func(rest []int, sum int, short bool)
	try = func(rest []int, sum int, short bool) {
		if len(rest) == 0 {
			if sum > top {
				top, best = sum, slices.Clone(parts)
			}
			return
		}
		for _, sub := range subsetsOf(rest[1:]) {
			small := len(sub)+1 == len(free)%size
			if len(sub)+1 != size && (short || !small) {
				continue
			}
			part := append([]int{rest[0]}, sub...)
			parts = append(parts, part)
			left := slices.DeleteFunc(slices.Clone(rest), func(g int) bool { return slices.Contains(part, g) })
			try(left, sum+linksAmong(h, part), short || len(part) != size)
			parts = parts[:len(parts)-1]
		}
	}
	try(free, 0, false)
	var chosen []int
	for _, part := range best {
		if len(part) == size && (chosen == nil || linksAmong(h, part) > linksAmong(h, chosen)) {
			chosen = part
		}
	}
	return chosen
}
