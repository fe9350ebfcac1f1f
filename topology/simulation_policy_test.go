package topology

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// gpuMask is a set of GPUs of a host, by index.
type gpuMask uint8

func (m gpuMask) count() int { return bits.OnesCount8(uint8(m)) }

// first returns the first n GPUs of a mask.
func (m gpuMask) first(n int) gpuMask {
	for m.count() > n {
		m &^= 1 << (bits.Len8(uint8(m)) - 1)
	}
	return m
}

// fleet has the machines of a simulation, which are hosts of eight GPUs.
type fleet struct {
	hosts []job.Host
	racks [][]int // hosts of each rack
	sites [][]int // hosts of each switch
	rack  []int   // the rack of each host
	// joins says how well each set of GPUs of each host is connected. island says how well the best set of each
	// size is connected.
	joins  [][]setJoin
	island [][9]setJoin
	place  map[string]gpuPlace // places by UUID
}

type gpuPlace struct{ host, gpu int }

// setJoin has what Choice.Level compares: the ring and the links of a set. The brute force computes it.
type setJoin struct{ ring, links int }

func (j setJoin) atLeast(k setJoin) bool {
	return j.ring > k.ring || j.ring == k.ring && j.links >= k.links
}

// newFleet makes racks of hosts. Half of each rack is below one switch.
func newFleet(racks, perRack int, machines func(rack int) func(string) job.Host) *fleet {
	f := &fleet{place: map[string]gpuPlace{}}
	known := map[string]int{} // hosts of the same kind are connected in the same way
	for r := range racks {
		for i := range perRack {
			at := len(f.hosts)
			h := in(machines(r)(fmt.Sprintf("h%02d", at+1)), fmt.Sprintf("rack%d", r+1), fmt.Sprintf("switch%d", i*2/perRack+1))
			f.hosts = append(f.hosts, h)
			f.rack = append(f.rack, r)
			if i == 0 {
				f.racks = append(f.racks, nil)
			}
			if i*2%perRack == 0 {
				f.sites = append(f.sites, nil)
			}
			f.racks[r] = append(f.racks[r], at)
			f.sites[len(f.sites)-1] = append(f.sites[len(f.sites)-1], at)
			for g, d := range h.Devices {
				f.place[d.UUID] = gpuPlace{at, g}
			}
			kind := fmt.Sprint(h.Links)
			if like, ok := known[kind]; ok {
				f.joins, f.island = append(f.joins, f.joins[like]), append(f.island, f.island[like])
				continue
			}
			known[kind] = at
			joins, island := make([]setJoin, 1<<8), [9]setJoin{}
			for m := 1; m < len(joins); m++ {
				var gpus []int
				for g := range 8 {
					if m>>g&1 != 0 {
						gpus = append(gpus, g)
					}
				}
				joins[m] = setJoin{ringThrough(h, gpus), linksAmong(h, gpus)}
				if !island[len(gpus)].atLeast(joins[m]) {
					island[len(gpus)] = joins[m]
				}
			}
			f.joins, f.island = append(f.joins, joins), append(f.island, island)
		}
	}
	return f
}

// idle returns all GPUs of all hosts.
func (f *fleet) idle() []gpuMask { return slices.Repeat([]gpuMask{1<<8 - 1}, len(f.hosts)) }

// level returns how close the GPUs of a gang are (see Choice.Level), on how many hosts they are, and how many
// NVLinks the weakest link of their ring has. links is 0 if the gang is on several hosts.
func (f *fleet) level(taken []gpuMask) (level job.Locality, hosts, links int) {
	last, racks := 0, map[int]bool{}
	for h, m := range taken {
		if m != 0 {
			last, racks[f.rack[h]] = h, true
			hosts++
		}
	}
	if hosts == 1 {
		links = f.joins[last][taken[last]].ring / 100 // a link's score
	}
	switch m := taken[last]; {
	case hosts == 1 && f.joins[last][m].atLeast(f.island[last][m.count()]):
		return job.LocalityIsland, hosts, links
	case hosts == 1:
		return job.LocalityHost, hosts, links
	case len(racks) == 1:
		return job.LocalityRack, hosts, links
	}
	return job.LocalityAny, hosts, links
}

// policy is a way to place gangs. For all policies, the ticket rule decides which gangs may start, and on which
// GPUs.
type policy struct {
	name string
	// levels has the levels for which a gang waits before it takes a wider one. The gang skips levels on which
	// it would not fit even if no GPU were busy. The last level is the widest.
	levels []job.Locality
	// place chooses GPUs among the free ones within a level. It returns nil if the gang does not fit.
	place func(f *fleet, free []gpuMask, gpus int, level job.Locality) ([]gpuMask, error)
}

// policies has the policies that are compared, in the order of the constants below. The last one is gangrun's.
var policies = []policy{
	{"first-fit", []job.Locality{job.LocalityAny}, firstFit},
	{"best-fit", []job.Locality{job.LocalityAny}, bestFit},
	{"best-fit with waiting", []job.Locality{job.LocalityHost, job.LocalityRack, job.LocalityAny}, bestFit},
	{"ideal best-fit", job.Localities(), bestFit},
	{"gangrun", job.Localities(), packed},
}

const (
	ruleFirst = iota
	ruleBest
	ruleBlind // waits, and ignores links
	ruleLent  // waits, and recognises islands as gangrun does
	ruleOwn
)

// packed is gangrun's own policy, PlaceGPUs.
func packed(f *fleet, free []gpuMask, gpus int, level job.Locality) ([]gpuMask, error) {
	for h := range f.hosts {
		for g := range f.hosts[h].Devices {
			f.hosts[h].Devices[g].Busy = ""
			if free[h]>>g&1 == 0 {
				f.hosts[h].Devices[g].Busy = "another gang"
			}
		}
	}
	c, err := PlaceGPUs(Want{Ranks: gpus, GPUs: 1, Locality: level}, job.Inventory{Hosts: f.hosts}, job.Excluded{})
	if err != nil {
		if _, none := err.(*NoPlacement); none {
			return nil, nil
		}
		return nil, err
	}
	taken := make([]gpuMask, len(free))
	for _, r := range c.Placement.Ranks {
		for _, uuid := range r.Devices {
			p := f.place[uuid]
			taken[p.host] |= 1 << p.gpu
		}
	}
	if own, _, _ := f.level(taken); own != c.Level {
		return nil, fmt.Errorf("PlaceGPUs calls %v of level %s %s", taken, own, c.Level)
	}
	return taken, nil
}

// firstFit takes the first host that has room. If there is none, it takes the first free GPUs.
func firstFit(_ *fleet, free []gpuMask, gpus int, _ job.Locality) ([]gpuMask, error) {
	taken := make([]gpuMask, len(free))
	for h, m := range free {
		if m.count() >= gpus {
			taken[h] = m.first(gpus)
			return taken, nil
		}
	}
	for h, m := range free {
		taken[h] = m.first(min(gpus, m.count()))
		if gpus -= taken[h].count(); gpus == 0 {
			return taken, nil
		}
	}
	return nil, nil
}

// bestFit takes the host with the fewest free GPUs that has room. If there is none, it takes the switch with
// the fewest free GPUs, then the rack, then any hosts, as Slurm does with a topology. It takes the first free
// GPUs of a host. For an island, it takes an island of the host with the fewest free GPUs that has one.
func bestFit(f *fleet, free []gpuMask, gpus int, level job.Locality) ([]gpuMask, error) {
	taken := make([]gpuMask, len(free))
	tight := -1
	for h, m := range free {
		if m.count() < gpus || tight >= 0 && m.count() >= free[tight].count() {
			continue
		}
		take := m.first(gpus)
		if level == job.LocalityIsland {
			if take = f.islandIn(h, m, gpus); take == 0 {
				continue
			}
		}
		tight, taken = h, make([]gpuMask, len(free))
		taken[h] = take
	}
	if tight >= 0 {
		return taken, nil
	}
	if level == job.LocalityIsland || level == job.LocalityHost {
		return nil, nil
	}
	groups := [][][]int{f.sites, f.racks}
	if level == job.LocalityAny {
		all := make([]int, len(free))
		for h := range all {
			all[h] = h
		}
		groups = append(groups, [][]int{all})
	}
	for _, list := range groups {
		var best []int
		fewest := 0
		for _, hosts := range list {
			sum := 0
			for _, h := range hosts {
				sum += free[h].count()
			}
			if sum >= gpus && (best == nil || sum < fewest) {
				best, fewest = hosts, sum
			}
		}
		if best != nil {
			return fillUp(free, best, gpus), nil
		}
	}
	return nil, nil
}

// islandIn returns a set of free GPUs of a host that is connected best, or none.
func (f *fleet) islandIn(host int, free gpuMask, gpus int) gpuMask {
	for m := 1; m < 1<<8; m++ {
		if s := gpuMask(m); s&^free == 0 && s.count() == gpus && f.joins[host][m].atLeast(f.island[host][gpus]) {
			return s
		}
	}
	return 0
}

// fillUp takes the hosts with the most free GPUs. For the rest, it takes the host with the fewest free GPUs
// that has room.
func fillUp(free []gpuMask, hosts []int, gpus int) []gpuMask {
	taken := make([]gpuMask, len(free))
	for gpus > 0 {
		next := -1
		for _, h := range hosts {
			if taken[h] != 0 || free[h] == 0 {
				continue
			}
			n, most := free[h].count(), 0
			if next >= 0 {
				most = free[next].count()
			}
			if next < 0 || n >= gpus && (most < gpus || n < most) || n < gpus && n > most {
				next = h
			}
		}
		taken[next] = free[next].first(min(gpus, free[next].count()))
		gpus -= taken[next].count()
	}
	return taken
}
