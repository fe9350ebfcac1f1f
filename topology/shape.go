package topology

import (
	"math/bits"
	"slices"
)

// exact is the largest number of GPUs of a host for which all subsets are examined.
const exact = 16

// shape describes the GPUs of a host, whether or not they are in use. Equal hosts share one shape. It omits
// GPUs that are divided into MIG instances. A shape of at most exact GPUs has tables with one entry for each
// subset of the GPUs.
type shape struct {
	n       int
	scores  [][]int32
	nic     []int32 // distance of each GPU to its nearest NIC
	islands [][]int
	pairs   []pair // only in a wide shape

	// The tables have one entry for each subset as a bit mask. They are nil in a wide shape.
	rings []int32 // the values of ring bottlenecks, best first
	ring  []uint8 // bottleneck of each subset, as an index in rings
	links []int32 // sum of link scores
	far   []int32 // sum of NIC distances
	value []int32 // value of the subset if it stays free; see Cost.Left
	holds []sizes // sizes for which the subset contains a set that is connected best
}

// sizes is a set of numbers of GPUs, from 2 on: if bit i is set, the number i+1 is in the set.
type sizes uint16

func newShape(scores [][]int32, nic []int32) *shape {
	s := &shape{n: len(nic), scores: scores, nic: nic, islands: islands(scores)}
	if s.n > exact {
		s.pairs = allPairs(scores)
		return s
	}
	all := 1 << s.n
	s.links, s.far = make([]int32, all), make([]int32, all)
	for set := 1; set < all; set++ {
		low, rest := bits.TrailingZeros(uint(set)), set&(set-1)
		sum := s.links[rest]
		for m := uint(rest); m != 0; m &= m - 1 {
			sum += scores[low][bits.TrailingZeros(m)]
		}
		s.links[set], s.far[set] = sum, s.far[rest]+nic[low]
	}
	s.rings, s.ring = ringTable(scores)
	s.value = valueTable(scores, s.islands)
	s.holds = s.holdsTable()
	return s
}

// islands divides the GPUs into islands (see Cost.Left).
func islands(scores [][]int32) [][]int {
	best := int32(0)
	for i, row := range scores {
		for _, v := range row[:i] {
			best = max(best, class(v))
		}
	}
	if best < 30 {
		best = 0
	}
	var parts [][]int
	seen := make([]bool, len(scores))
	for first := range scores {
		if seen[first] {
			continue
		}
		seen[first] = true
		part := []int{first}
		for i := 0; i < len(part); i++ {
			for j, v := range scores[part[i]] {
				if !seen[j] && class(v) >= best {
					seen[j] = true
					part = append(part, j)
				}
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// thresholds lists the different scores between GPUs, best first.
func thresholds(scores [][]int32) []int32 {
	var values []int32
	seen := map[int32]bool{}
	for i, row := range scores {
		for _, v := range row[:i] {
			if !seen[v] {
				seen[v] = true
				values = append(values, v)
			}
		}
	}
	sortDescending(values)
	return values
}

// ringTable computes the ring bottleneck of every subset. For each threshold, it builds paths of links that
// reach the threshold, one GPU at a time. A path starts at the first GPU of its subset and covers the subset.
// ends[set] has the GPUs at which such paths can end.
func ringTable(scores [][]int32) ([]int32, []uint8) {
	n := len(scores)
	rings := append([]int32{NoRing}, thresholds(scores)...)
	ring := make([]uint8, 1<<n)
	open := make([]bool, 1<<n) // not settled by a better threshold
	for set := range open {
		open[set] = bits.OnesCount(uint(set)) > 1
	}
	ends := make([]uint16, 1<<n)
	near := make([]uint16, n)
	for t := 1; t < len(rings); t++ {
		for i := range n {
			near[i] = 0
			for j := range n {
				if i != j && scores[i][j] >= rings[t] {
					near[i] |= 1 << j
				}
			}
		}
		for set := 1; set < 1<<n; set++ {
			first := set & -set
			if set == first {
				ends[set] = uint16(first)
				continue
			}
			var end uint16
			for m := set &^ first; m != 0; m &= m - 1 {
				if v := m & -m; ends[set&^v]&near[bits.TrailingZeros(uint(v))] != 0 {
					end |= uint16(v)
				}
			}
			ends[set] = end
			if open[set] && end&near[bits.TrailingZeros(uint(first))] != 0 {
				open[set] = false
				ring[set] = uint8(t)
			}
		}
	}
	return rings, ring
}

// valueTable computes the value of every subset if it stays free.
func valueTable(scores [][]int32, islands [][]int) []int32 {
	n := len(scores)
	value := make([]int32, 1<<n)
	for set := 1; set < 1<<n; set++ {
		low, rest := bits.TrailingZeros(uint(set)), set&(set-1)
		best := value[rest]
		for m := rest; m != 0; m &= m - 1 {
			j := bits.TrailingZeros(uint(m))
			best = max(best, scores[low][j]+value[rest&^(1<<j)])
		}
		value[set] = best
	}
	masks := []int{1<<n - 1}
	for _, part := range islands {
		mask := 0
		for _, i := range part {
			mask |= 1 << i
		}
		masks = append(masks, mask)
	}
	for _, mask := range masks {
		for set := range value {
			if mask != 0 && set&mask == mask {
				value[set]++
			}
		}
	}
	return value
}

// holdsTable computes, for every subset, the sizes of the best sets that it contains. A set of GPUs is a best
// one if no set of the same size on the host is connected better.
func (s *shape) holdsTable() []sizes {
	var best [exact + 1]joined
	for set, links := range s.links {
		j, top := joined{s.rings[s.ring[set]], links}, &best[bits.OnesCount(uint(set))]
		if j.ring > top.ring || j.ring == top.ring && links > top.links {
			*top = j
		}
	}
	holds := make([]sizes, len(s.links))
	for set, links := range s.links {
		if size := bits.OnesCount(uint(set)); size > 1 && best[size] == (joined{s.rings[s.ring[set]], links}) {
			holds[set] = 1 << (size - 1)
		}
	}
	for gpu := 1; gpu < len(holds); gpu <<= 1 { // it contains everything that it contains without this GPU
		for from := 0; from < len(holds); from += 2 * gpu {
			with := holds[from+gpu : from+2*gpu]
			for i, h := range holds[from : from+gpu] {
				with[i] |= h
			}
		}
	}
	return holds
}

// intact returns how many islands have all of their GPUs in free. hosts is 1 if all GPUs of the
// host are in free, and otherwise 0.
func (s *shape) intact(free set) (islands, hosts int) {
	for _, part := range s.islands {
		if !slices.ContainsFunc(part, func(i int) bool { return !free.has(i) }) {
			islands++
		}
	}
	if s.n > 0 && free.count() == s.n {
		hosts = 1
	}
	return islands, hosts
}

// match yields the scores of the pairs in the best division of a set into pairs. For a wide shape, the division
// is good, but may not be the best one.
func (s *shape) match(free set, yield func(score int32)) {
	if s.ring == nil {
		s.wideMatch(free, yield)
		return
	}
	worth := func(m uint64) int32 {
		islands, hosts := s.intact(set{m})
		return s.value[m] - int32(islands+hosts)
	}
	for m := free[0]; m != 0; {
		low, next := bits.TrailingZeros64(m), m&(m-1)
		for rest := next; rest != 0; rest &= rest - 1 {
			j := bits.TrailingZeros64(rest)
			if without := m & (m - 1) &^ (1 << j); s.scores[low][j] > 0 && s.scores[low][j]+worth(without) == worth(m) {
				yield(s.scores[low][j])
				next = without
				break
			}
		}
		m = next
	}
}
