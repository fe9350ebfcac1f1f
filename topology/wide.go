package topology

import (
	"cmp"
	"math"
	"slices"
)

// A host with more than exact GPUs has too many subsets to try all of them. Usually, its GPUs are divided into
// MIG instances. Sets are built one GPU at a time. They begin with each GPU that differs from the earlier ones.
// The next GPU is always the one that keeps the best ring.

// circle is a ring through a growing set of GPUs.
type circle struct {
	s     *shape
	order []int
}

// weakest returns the score of the weakest link of the ring, and of the next weakest one.
func (c *circle) weakest() (low, next int32) {
	low, next = NoRing, NoRing
	if len(c.order) < 2 {
		return low, next
	}
	for i, a := range c.order {
		v := c.s.scores[a][c.order[(i+1)%len(c.order)]]
		if v < low {
			low, next = v, low
		} else {
			next = min(next, v)
		}
	}
	return low, next
}

// where returns the best position in the ring for another GPU, and the weakest link of the ring with this GPU.
func (c *circle) where(gpu int, low, next int32) (int, int32) {
	best, ring, gain := 0, int32(-1), int32(math.MinInt32)
	for i, a := range c.order {
		b := c.order[(i+1)%len(c.order)]
		rest, gone := low, c.s.scores[a][b]
		if gone == low && len(c.order) > 2 {
			rest = next
		}
		in, out := c.s.scores[a][gpu], c.s.scores[gpu][b]
		r := min(rest, in, out)
		if g := in + out - gone; r > ring || r == ring && g > gain {
			best, ring, gain = i+1, r, g
		}
	}
	return best, ring
}

// insert puts a GPU at its best position.
func (c *circle) insert(gpu int) {
	low, next := c.weakest()
	at, _ := c.where(gpu, low, next)
	c.order = slices.Insert(c.order, at, gpu)
}

// grow yields sets of 1 to most of the free GPUs.
func (s *shape) grow(free set, most int, yield func(chosen set, size int, ring, links, far int32)) {
	list := free.members()
	for i, seed := range list {
		if slices.ContainsFunc(list[:i], func(earlier int) bool { return s.twins(earlier, seed) }) {
			continue
		}
		var chosen set
		chosen.add(seed)
		c := circle{s, []int{seed}}
		links, far := int32(0), s.nic[seed]
		gain := make([]int32, s.n) // how much each GPU would add to links
		yield(chosen, 1, NoRing, 0, far)
		for last := seed; len(c.order) < min(most, len(list)); {
			low, next := c.weakest()
			to, ring := -1, int32(-1)
			for _, gpu := range list {
				gain[gpu] += s.scores[last][gpu]
				if chosen.has(gpu) {
					continue
				}
				_, r := c.where(gpu, low, next)
				if to < 0 || cmp.Or(cmp.Compare(ring, r), cmp.Compare(gain[to], gain[gpu]), cmp.Compare(s.nic[gpu], s.nic[to])) < 0 {
					to, ring = gpu, r
				}
			}
			c.insert(to)
			chosen.add(to)
			links, far, last = links+gain[to], far+s.nic[to], to
			low, _ = c.weakest()
			yield(chosen, len(c.order), low, links, far)
		}
	}
}

// twins reports whether two GPUs have the same links to all other GPUs, and the same distance to a NIC.
func (s *shape) twins(a, b int) bool {
	for i := range s.n {
		if i != a && i != b && s.scores[a][i] != s.scores[b][i] {
			return false
		}
	}
	return s.nic[a] == s.nic[b]
}

// pair is a pair of GPUs of a wide shape.
type pair struct {
	score int32
	a, b  int
}

// allPairs returns all pairs of GPUs, the best connected ones first.
func allPairs(scores [][]int32) []pair {
	var pairs []pair
	for b, row := range scores {
		for a, v := range row[:b] {
			pairs = append(pairs, pair{v, a, b})
		}
	}
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(q.score, p.score) })
	return pairs
}

// wideValue returns the value of a set of GPUs if it stays free. It chooses the pairs greedily.
func (s *shape) wideValue(free set) int32 {
	islands, hosts := s.intact(free)
	value := int32(islands + hosts)
	s.wideMatch(free, func(score int32) { value += score })
	return value
}

// wideMatch yields the scores of the pairs that it chooses.
func (s *shape) wideMatch(free set, yield func(score int32)) {
	left := free.count()
	for _, p := range s.pairs {
		if left < 2 {
			return
		}
		if free.has(p.a) && free.has(p.b) {
			free.drop(p.a)
			free.drop(p.b)
			left -= 2
			yield(p.score)
		}
	}
}
