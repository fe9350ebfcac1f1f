package topology

import (
	"cmp"
	"slices"
)

// site has the hosts of one switch that have free GPUs.
type site struct {
	views []int
	cap   int   // number of ranks that the hosts can take
	hosts []int // the number of hosts that can take each number of ranks
}

// rack has the sites of one rack. The sites that can take the most ranks come first.
type rack struct {
	sites []*site
	cap   int
}

// These are the limits of the search for racks and switches. If none of them is reached, the search is exact.
// They limit the cells of the table for the smallest number of switches, the steps of the search, the pools
// that it keeps, and the hosts in these pools.
const (
	mostCells = 1 << 20
	mostSteps = 50000
	mostPools = 64
	mostHosts = 4000
)

// racksOf groups all hosts except skip by rack and switch. The racks that can take the most ranks come first.
func (s *survey) racksOf(skip int) []*rack {
	racks := map[int]*rack{}
	sites := map[int]*site{}
	var list []*rack
	for i := range s.views {
		v := &s.views[i]
		n := len(v.options) - 1
		if i == skip || n < 1 {
			continue
		}
		r := racks[v.rack]
		if r == nil {
			r = &rack{}
			racks[v.rack] = r
			list = append(list, r)
		}
		at := sites[v.sw]
		if at == nil {
			at = &site{}
			sites[v.sw] = at
			r.sites = append(r.sites, at)
		}
		at.views = append(at.views, i)
		if len(at.hosts) <= n {
			at.hosts = append(at.hosts, make([]int, n+1-len(at.hosts))...)
		}
		at.hosts[n]++
		at.cap += n
		r.cap += n
	}
	for _, r := range list {
		slices.SortStableFunc(r.sites, func(a, b *site) int { return cmp.Compare(b.cap, a.cap) })
	}
	slices.SortStableFunc(list, func(a, b *rack) int { return cmp.Compare(b.cap, a.cap) })
	return list
}

// fewestRacks returns the smallest number of racks that can take the ranks, or 0 if all racks together cannot.
func fewestRacks(racks []*rack, ranks int) int {
	for i, r := range racks {
		if ranks -= r.cap; ranks <= 0 {
			return i + 1
		}
	}
	return 0
}

// fewestSwitches returns a smallest set of switches, in count racks, that can take the ranks. There must be
// such a set. If its table would be too large, it returns a set that may not be the smallest.
func fewestSwitches(racks []*rack, count, ranks int) []*site {
	kept := ableRacks(racks, count)
	most := 0
	for _, r := range racks[:count] {
		most += len(r.sites)
	}
	if len(kept)*(count+1)*(most+1) > mostCells {
		return fewSwitches(racks[:count], ranks)
	}
	// caps has the largest number of ranks that each number of racks and switches can take, or -1 if there are
	// not so many switches.
	caps := make([]int, (count+1)*(most+1))
	for i := range caps {
		caps[i] = -1
	}
	caps[0] = 0
	given := make([]uint16, len(kept)*len(caps))
	for i, r := range kept {
		for used := min(i+1, count); used > 0; used-- {
			for n := most; n >= used; n-- {
				sum := 0
				for give := 1; give <= min(n, len(r.sites)); give++ {
					sum += r.sites[give-1].cap
					if before := caps[(used-1)*(most+1)+n-give]; before >= 0 && before+sum > caps[used*(most+1)+n] {
						caps[used*(most+1)+n] = before + sum
						given[i*len(caps)+used*(most+1)+n] = uint16(give)
					}
				}
			}
		}
	}
	n := count
	for caps[count*(most+1)+n] < ranks {
		n++
	}
	var pool []*site
	for i, used := len(kept)-1, count; used > 0; i-- {
		if give := int(given[i*len(caps)+used*(most+1)+n]); give > 0 {
			pool = append(pool, kept[i].sites[:give]...)
			used, n = used-1, n-give
		}
	}
	return pool
}

// ableRacks keeps, for every number of switches, count racks: those whose switches can take the most ranks. It
// does for racks what candidates does for hosts.
func ableRacks(racks []*rack, count int) []*rack {
	able := map[*rack]bool{}
	broad := 0
	for _, r := range racks {
		broad = max(broad, len(r.sites))
	}
	first := make(map[*rack]int, len(racks)) // number of ranks that the first n switches can take
	for n := 1; n <= broad; n++ {
		order := slices.DeleteFunc(slices.Clone(racks), func(r *rack) bool { return len(r.sites) < n })
		for _, r := range order {
			first[r] += r.sites[n-1].cap
		}
		slices.SortStableFunc(order, func(a, b *rack) int { return cmp.Compare(first[b], first[a]) })
		for _, r := range order[:min(count, len(order))] {
			able[r] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(racks), func(r *rack) bool { return !able[r] })
}

// fewSwitches chooses one switch of each rack. Then it adds the switches that can take the most ranks, until
// all ranks have room.
func fewSwitches(racks []*rack, ranks int) []*site {
	var pool, rest []*site
	for _, r := range racks {
		pool = append(pool, r.sites[0])
		ranks -= r.sites[0].cap
		rest = append(rest, r.sites[1:]...)
	}
	slices.SortStableFunc(rest, func(a, b *site) int { return cmp.Compare(b.cap, a.cap) })
	for ; ranks > 0; rest = rest[1:] {
		pool = append(pool, rest[0])
		ranks -= rest[0].cap
	}
	return pool
}

// fewestHosts returns the smallest number of hosts of a pool that can take the ranks.
func fewestHosts(pool []*site, ranks int) int {
	var hosts [widest + 1]int
	for _, at := range pool {
		for n, h := range at.hosts {
			hosts[n] += h
		}
	}
	used := 0
	for n := widest; n > 0; n-- {
		need := (ranks + n - 1) / n
		if need <= hosts[n] {
			return used + need
		}
		used += hosts[n]
		ranks -= hosts[n] * n
	}
	return used
}

// search goes through the ways to choose racks, and switches in these racks, and keeps the best pools.
type search struct {
	ranks, racks, switches int
	steps                  int
	pools                  [][]*site
	hosts                  int // the smallest number of hosts that a pool needs
}

// keep keeps a pool, unless another pool needs fewer hosts.
func (s *search) keep(pool []*site) {
	hosts := fewestHosts(pool, s.ranks)
	if s.hosts == 0 || hosts < s.hosts {
		s.hosts, s.pools = hosts, nil
	}
	if hosts == s.hosts && len(s.pools) < mostPools {
		s.pools = append(s.pools, slices.Clone(pool))
	}
}

// inRacks goes through the ways to choose racks. For each way, it goes through the ways to choose switches in
// these racks.
func (s *search) inRacks(from, chosen []*rack, cap int) {
	if s.steps++; s.steps > mostSteps {
		return
	}
	if len(chosen) == s.racks {
		s.steps += len(chosen)
		var sites []*site
		for _, r := range chosen {
			sites = append(sites, r.sites...)
		}
		slices.SortStableFunc(sites, func(a, b *site) int { return cmp.Compare(b.cap, a.cap) })
		s.inSites(sites, nil, 0)
		return
	}
	for i, r := range from {
		if cap+(s.racks-len(chosen))*r.cap < s.ranks {
			return
		}
		s.inRacks(from[i+1:], append(chosen, r), cap+r.cap)
	}
}

// inSites goes through the ways to choose switches. Because fewer racks cannot take the ranks,
// every choice that can take them has switches in all of the racks.
func (s *search) inSites(from, chosen []*site, cap int) {
	if s.steps++; s.steps > mostSteps {
		return
	}
	if len(chosen) == s.switches {
		s.steps += len(chosen)
		if cap >= s.ranks {
			s.keep(chosen)
		}
		return
	}
	for i, at := range from {
		if cap+(s.switches-len(chosen))*at.cap < s.ranks {
			return
		}
		s.inSites(from[i+1:], append(chosen, at), cap+at.cap)
	}
}

// pools returns the sets of switches among which a gang on several hosts is placed. These are the sets with the
// fewest racks. Of these, they are the sets with the fewest switches. Of these, they are the sets that need the
// fewest hosts.
func (s *survey) pools(skip int) *search {
	racks := s.racksOf(skip)
	found := &search{ranks: s.want.Ranks, racks: fewestRacks(racks, s.want.Ranks)}
	if found.racks == 0 {
		return nil
	}
	one := fewestSwitches(racks, found.racks, s.want.Ranks)
	found.switches = len(one)
	found.inRacks(racks, nil, 0)
	if found.steps > mostSteps {
		found.keep(one)
	}
	return found
}
