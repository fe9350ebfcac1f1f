package topology

import (
	"cmp"
	"slices"
)

// margin is the number of a gang's hosts that are chosen by comparing their costs. A gang of up to margin hosts
// is placed exactly. If the gang needs more hosts, the other ones are the hosts that can take the most ranks,
// and the gang takes as many GPUs of them as it can use.
const margin = 24

// pick has the GPUs that one host gives to a gang.
type pick struct {
	view  int
	ranks int
	set   set
}

// group is a set of hosts that look the same. views has the hosts that can still be chosen, in the order of the
// inventory.
type group struct {
	*state
	views []int
	most  int // number of ranks that each host can take
}

// solve puts the ranks on the given number of hosts, chosen from views. Fewer hosts must not be enough. No ring
// may be weaker than atLeast. Of all such placements, solve chooses the one with the best weakest ring and,
// among these, the one with the best sum of vecs. Every chosen host has ranks, because fewer hosts are not
// enough.
func (s *survey) solve(views []int, hosts int, atLeast int32) (picks []pick, ring int32, total vec, ok bool) {
	groups := s.groups(views)
	for _, ring := range rings(groups) {
		if ring < atLeast {
			break
		}
		if picks, ok := fill(groups, hosts, s.want.Ranks, ring); ok {
			for _, p := range picks {
				total = total.plus(s.views[p.view].best(p.ranks, ring).vec)
			}
			return picks, ring, total, true
		}
	}
	return nil, 0, vec{}, false
}

// groups divides the views into groups that look the same.
func (s *survey) groups(views []int) []group {
	var groups []group
	at := map[*state]int{}
	for _, v := range views {
		st := s.views[v].state
		i, ok := at[st]
		if !ok {
			i = len(groups)
			at[st] = i
			groups = append(groups, group{state: st})
		}
		groups[i].views = append(groups[i].views, v)
	}
	return groups
}

// rings returns the bottlenecks that hosts can have, the best first.
func rings(groups []group) []int32 {
	var values []int32
	for _, g := range groups {
		for _, list := range g.options {
			for _, o := range list {
				if !slices.Contains(values, o.ring) {
					values = append(values, o.ring)
				}
			}
		}
	}
	sortDescending(values)
	return values
}

// fill does the work of solve for one bottleneck.
func fill(groups []group, hosts, ranks int, ring int32) ([]pick, bool) {
	groups = slices.Clone(groups)
	for i := range groups {
		groups[i].most = groups[i].state.most(ring)
	}
	groups = slices.DeleteFunc(groups, func(g group) bool { return g.most == 0 })
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.most, a.most), a.best(a.most, ring).vec.compare(&b.best(b.most, ring).vec), cmp.Compare(a.views[0], b.views[0]))
	})
	slack, left := -ranks, hosts // number of ranks that the hosts with the most room could take beyond ranks
	for _, g := range groups {
		n := min(left, len(g.views))
		slack, left = slack+n*g.most, left-n
	}
	if left > 0 || slack < 0 {
		return nil, false
	}
	full := hosts - margin
	if slack == 0 {
		full = hosts // the hosts can only be replaced by hosts that take as many ranks
	}
	var picks []pick
	for i := range groups {
		g := &groups[i]
		n := min(max(0, full-len(picks)), len(g.views))
		for _, v := range g.views[:n] {
			picks = append(picks, pick{v, g.most, g.best(g.most, ring).set})
		}
		g.views = g.views[n:]
		ranks -= n * g.most
	}
	if len(picks) == hosts {
		return picks, true
	}
	rest, ok := weigh(candidates(groups, hosts-len(picks), ring), hosts-len(picks), ranks, ring)
	return append(picks, rest...), ok
}

// candidate is one host that weigh may choose.
type candidate struct {
	*state
	view, most int
}

// candidates returns the hosts that weigh needs to consider. For every number of ranks, it keeps up to hosts
// hosts that can take that number at the lowest cost. Any other host could be replaced by one of these at no
// higher cost. The hosts stay in order.
func candidates(groups []group, hosts int, ring int32) []candidate {
	keep := make([]int, len(groups))
	order := make([]int, len(groups))
	most := 0
	for i := range groups {
		order[i] = i
		most = max(most, groups[i].most)
	}
	for n := 1; n <= most; n++ {
		able := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return groups[i].best(n, ring) == nil })
		slices.SortStableFunc(able, func(a, b int) int {
			return groups[a].best(n, ring).vec.compare(&groups[b].best(n, ring).vec)
		})
		left := hosts
		for _, i := range able {
			take := min(left, len(groups[i].views))
			keep[i] = max(keep[i], take)
			left -= take
		}
	}
	var list []candidate
	for i, g := range groups {
		for _, v := range g.views[:keep[i]] {
			list = append(list, candidate{g.state, v, g.most})
		}
	}
	return list
}

// weigh chooses hosts among the candidates, and a number of ranks for each, so that the sum of vecs is best.
// The candidates must be ordered by the number of ranks that they can take, the largest first. weigh goes
// through them, and keeps the best sum for each number of hosts and ranks so far. It omits numbers from which
// the goal cannot be reached.
func weigh(list []candidate, hosts, ranks int, ring int32) ([]pick, bool) {
	prefix := make([]int, len(list)+1)
	for i, c := range list {
		prefix[i+1] = prefix[i] + c.most
	}
	if hosts > len(list) || prefix[hosts] < ranks {
		return nil, false
	}
	width := prefix[hosts] - ranks + 1 // number of counts of ranks that are within reach, at any step
	// lowest is the smallest number of ranks that must be placed on the used hosts among the first done
	// candidates.
	lowest := func(done, used int) int {
		return ranks - (prefix[min(done+hosts-used, len(list))] - prefix[done])
	}
	type cell struct {
		sum  vec
		have bool
	}
	cells := make([]cell, (hosts+1)*(ranks+1))
	cells[0].have = true
	given := make([]uint8, len(list)*(hosts+1)*width)
	for i, c := range list {
		for used := min(i+1, hosts); used > 0; used-- {
			low := lowest(i+1, used)
			for n := max(low, used); n <= min(prefix[used], ranks); n++ {
				to := &cells[used*(ranks+1)+n]
				for give := 1; give <= min(c.most, n); give++ {
					from := &cells[(used-1)*(ranks+1)+n-give]
					if !from.have {
						continue
					}
					o := c.best(give, ring)
					if o == nil {
						continue
					}
					if sum := from.sum.plus(o.vec); !to.have || sum.compare(&to.sum) < 0 {
						*to = cell{sum, true}
						given[(i*(hosts+1)+used)*width+n-low] = uint8(give)
					}
				}
			}
		}
	}
	if !cells[hosts*(ranks+1)+ranks].have {
		return nil, false
	}
	var picks []pick
	for i, used, n := len(list)-1, hosts, ranks; used > 0; i-- {
		if give := int(given[(i*(hosts+1)+used)*width+n-lowest(i+1, used)]); give > 0 {
			picks = append(picks, pick{list[i].view, give, list[i].best(give, ring).set})
			used, n = used-1, n-give
		}
	}
	slices.Reverse(picks)
	return picks, true
}
