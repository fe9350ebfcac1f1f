package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// Want is what a gang needs.
type Want struct {
	Ranks int
	GPUs  int // GPUs of each rank, all on one host; at least 1
	// Locality is the widest level that is allowed. Empty means any level.
	Locality job.Locality
}

// Choice is a placement of a gang on GPUs, and the reasons for it.
type Choice struct {
	Placement job.Placement
	// Level is how close to each other the GPUs are. It is job.LocalityIsland if the gang is on one host and
	// has a best set of GPUs of that host. A set is best if no set of the same size has a better
	// Cost.Bottleneck, or the same Bottleneck and better Cost.Links. The comparison includes busy GPUs, but no
	// sick or excluded GPUs. (This is the island as a level of locality, and not an island of the host's links: see
	// docs/glossary.md.)
	Level job.Locality
	Cost  Cost
	// Why explains the choice in sentences. In a RunnerUp, it lists the differences between the RunnerUp and
	// the choice, in the order of the fields of Cost.
	Why []string
	// RunnerUp is the best alternative, or nil if there is none. For a gang on several hosts, the alternative
	// leaves out one of them: the host with the weakest ring, or the last of these if several are equally weak.
	// For a gang on one host, the alternative either does not use that host, or uses other GPUs of it at a
	// higher cost.
	RunnerUp *Choice

	facts facts
}

// PlaceGPUs returns the placement with the lowest Cost within the level that want allows. It does not use GPUs
// that are busy, sick, listed in excluded, or divided into MIG instances. It gives a MIG instance only to a
// rank that needs a single device, since a CUDA process can use at most one MIG instance (NVIDIA's MIG user
// guide, "CUDA Device Enumeration"). If the user has stated how many slots a host has, PlaceGPUs puts at most
// that many ranks on the host.
//
// The result is optimal if all of the following hold. Otherwise it is good, and has as few racks as
// possible.
//
//   - Hosts have at most 16 GPUs.
//   - The gang has at most 24 hosts.
//   - There are at most some ten thousand ways to choose racks and switches, and at most 64 of these
//     ways reach the smallest number of hosts.
//
// If several placements have the same cost, PlaceGPUs looks at the GPUs that stay free on the gang's hosts. For
// each host and each number n, it looks whether the host still has n free GPUs that are connected as well as its best n
// GPUs are when all are free. It prefers the placement for which this is so most often. Next, it prefers the placement
// after which the fewest GPUs stay free on these hosts, and then the placement whose hosts and GPUs come early in the
// inventory.
//
// Ranks are numbered by rack, switch and host, in the order of the inventory. On a host they are
// numbered along the best ring through its GPUs: the ring whose weakest link is best and, among equal
// rings, the one with the best sum of links. A rank of several GPUs gets GPUs that are close to each
// other, and the CPUs that are close to any of these GPUs. PlaceGPUs returns a *NoPlacement if the
// gang does not fit.
func PlaceGPUs(want Want, inventory job.Inventory, excluded job.Excluded) (Choice, error) {
	if want.Locality == "" {
		want.Locality = job.LocalityAny
	}
	if !slices.Contains(job.Localities(), want.Locality) {
		return Choice{}, fmt.Errorf("locality %q is none of %v", want.Locality, job.Localities())
	}
	if want.Ranks < 1 || want.GPUs < 1 {
		return Choice{}, fmt.Errorf("%d ranks of %d GPUs are no gang: ask for at least one of each", want.Ranks, want.GPUs)
	}
	s := look(want, inventory, excluded, false)
	best := s.choose(-1)
	if best == nil {
		return Choice{}, s.nowhere(inventory, excluded)
	}
	second := s.second(best)
	if second.compare(best) < 0 { // this can happen only if the search is not exact
		best, second = second, best
	}
	choice := s.choice(best)
	if second != nil {
		runnerUp := s.choice(second)
		runnerUp.Why = differ(runnerUp, choice)
		choice.RunnerUp = &runnerUp
	}
	choice.Why = s.why(best, &choice)
	return choice, nil
}

// plan is a placement before its ranks are numbered.
type plan struct {
	racks, switches int
	ring            int32
	vec             vec
	picks           []pick
}

// cost is the part of a plan that is compared.
func (p *plan) cost() Cost {
	return Cost{
		Racks: p.racks, Switches: p.switches, Hosts: len(p.picks), Bottleneck: int(p.ring),
		Links: -int(p.vec[0]), NIC: int(p.vec[1]), Left: -int(p.vec[2]),
	}
}

// compare returns a negative number if p is better than q. A plan that is nil is the worst.
func (p *plan) compare(q *plan) int {
	if p == nil || q == nil {
		return cmp.Compare(boolean(p == nil), boolean(q == nil))
	}
	return cmp.Or(p.cost().Compare(q.cost()), cmp.Compare(p.vec[3], q.vec[3]))
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// choose finds the best plan without the host skip. If skip is -1, all hosts may be used.
func (s *survey) choose(skip int) *plan {
	if p := s.onOne(skip); p != nil || s.want.Locality == job.LocalityIsland || s.want.Locality == job.LocalityHost {
		return p
	}
	return s.onSeveral(skip)
}

// onOne finds the best plan on one host.
func (s *survey) onOne(skip int) *plan {
	var best *option
	at := 0
	for i := range s.views {
		o := s.views[i].best(s.want.Ranks, -1)
		if o == nil || i == skip {
			continue
		}
		o = &s.views[i].options[s.want.Ranks][0]
		if best != nil && cmp.Or(cmp.Compare(best.ring, o.ring), o.vec.compare(&best.vec)) >= 0 {
			continue
		}
		if s.want.Locality == job.LocalityIsland && !s.isIsland(i, o) {
			continue
		}
		best, at = o, i
	}
	if best == nil {
		return nil
	}
	return &plan{1, 1, best.ring, best.vec, []pick{{at, s.want.Ranks, best.set}}}
}

// isIsland reports whether the option has a best set of GPUs of the host (see Choice.Level).
func (s *survey) isIsland(view int, o *option) bool {
	v := &s.views[view]
	size := s.want.Ranks * s.want.GPUs
	key := stateKey{v.shape, v.usable, size}
	best, ok := s.best[key]
	if !ok {
		best = v.shape.bestJoined(v.usable, size)
		s.best[key] = best
	}
	return joined{o.ring, -o.vec[0]}.compare(best) >= 0
}

// onSeveral finds the best plan on several hosts.
func (s *survey) onSeveral(skip int) *plan {
	found := s.pools(skip)
	if found == nil || s.want.Locality == job.LocalityRack && found.racks > 1 {
		return nil
	}
	var best *plan
	atLeast, seen := int32(-1), 0
	for _, pool := range found.pools {
		var views []int
		for _, at := range pool {
			views = append(views, at.views...)
		}
		slices.Sort(views)
		if seen += len(views); best != nil && seen > mostHosts {
			break
		}
		if picks, ring, sum, ok := s.solve(views, found.hosts, atLeast); ok {
			if p := (&plan{found.racks, found.switches, ring, sum, picks}); p.compare(best) < 0 {
				best, atLeast = p, ring
			}
		}
	}
	if best != nil {
		slices.SortFunc(best.picks, func(a, b pick) int {
			v, w := &s.views[a.view], &s.views[b.view]
			return cmp.Or(cmp.Compare(v.rack, w.rack), cmp.Compare(v.sw, w.sw), cmp.Compare(v.at, w.at))
		})
	}
	return best
}

// second finds the runner-up.
func (s *survey) second(best *plan) *plan {
	weakest := s.weakest(best)
	second := s.choose(weakest)
	if len(best.picks) > 1 {
		return second
	}
	gpus := s.want.Ranks * s.want.GPUs
	s.views[weakest].ways(func(size int) bool { return size == gpus }, gpus, func(_ int, o option) {
		if gpus == 1 {
			o.vec[1] = 0
		}
		p := plan{1, 1, o.ring, o.vec, []pick{{weakest, s.want.Ranks, o.set}}}
		if p.cost().Compare(best.cost()) > 0 && p.compare(second) < 0 &&
			(s.want.Locality != job.LocalityIsland || s.isIsland(weakest, &o)) {
			second = &p
		}
	})
	return second
}

// weakest returns the last of the plan's hosts with the weakest ring.
func (s *survey) weakest(p *plan) int {
	weakest, ring := 0, int32(NoRing)
	for _, pick := range p.picks {
		if o := s.views[pick.view].ringOf(pick.set); o <= ring {
			weakest, ring = pick.view, o
		}
	}
	return weakest
}

// asGood reports whether a gang on one host could have other GPUs there at the same cost.
// On a host with too many GPUs to try every set, it may miss some.
func (s *survey) asGood(p *plan) (found bool) {
	v, chosen := &s.views[p.picks[0].view], p.picks[0].set
	gpus := chosen.count()
	v.ways(func(size int) bool { return size == gpus }, gpus, func(_ int, o option) {
		if gpus == 1 {
			o.vec[1] = 0
		}
		other := plan{1, 1, o.ring, o.vec, []pick{{p.picks[0].view, s.want.Ranks, o.set}}}
		found = found || o.set != chosen && other.cost() == p.cost()
	})
	for _, a := range v.free.without(chosen).members() {
		found = found || slices.ContainsFunc(chosen.members(), func(b int) bool { return v.shape.twins(a, b) })
	}
	return found
}

// choice makes a Choice from a plan, and numbers the ranks.
func (s *survey) choice(p *plan) Choice {
	c := Choice{Cost: p.cost(), Level: job.LocalityAny, facts: s.facts(p)}
	switch {
	case len(p.picks) == 1 && s.isIsland(p.picks[0].view, &option{p.ring, p.vec, p.picks[0].set}):
		c.Level = job.LocalityIsland
	case len(p.picks) == 1:
		c.Level = job.LocalityHost
	case p.racks == 1:
		c.Level = job.LocalityRack
	}
	for node, pick := range p.picks {
		h := s.views[pick.view].host
		whole := whole(h)
		for local, gpus := range s.order(s.views[pick.view].shape, pick.set) {
			r := job.Rank{Rank: len(c.Placement.Ranks), Host: h.Name, LocalRank: local, LocalSize: pick.ranks, Node: node}
			cpus := make([]string, 0, 16)
			for _, g := range gpus {
				d := &h.Devices[whole[g]]
				r.Devices, cpus = append(r.Devices, d.UUID), append(cpus, d.CPUs)
			}
			r.CPUs = unite(cpus)
			c.Placement.Ranks = append(c.Placement.Ranks, r)
		}
		c.Placement.Hosts = append(c.Placement.Hosts, *h)
	}
	return c
}
