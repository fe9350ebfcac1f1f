package topology

import (
	"math/bits"
	"slices"
)

// order divides the GPUs of a set among the ranks of a host, and numbers the ranks. It caches the results.
func (s *survey) order(sh *shape, chosen set) [][]int {
	key := stateKey{sh, chosen, s.want.GPUs}
	ranks, ok := s.orders[key]
	if !ok {
		ranks = sh.order(chosen.members(), s.want.GPUs)
		s.orders[key] = ranks
	}
	return ranks
}

// order divides GPUs among ranks so that well-connected GPUs are in one rank. Each rank gets the given number
// of GPUs. The ranks are in the order of the best ring through them, and so are the GPUs of each rank. If there
// are too many GPUs to try every ring, order builds one ring GPU by GPU, and gives its GPUs to the ranks in
// turn.
func (s *shape) order(gpus []int, each int) [][]int {
	if len(gpus) > exact {
		c := circle{s, slices.Clone(gpus[:1])}
		for _, g := range gpus[1:] {
			c.insert(g)
		}
		return slices.Collect(slices.Chunk(c.order, each))
	}
	parts := partition(s.between(gpus), each)
	ranks := make([][]int, 0, len(parts))
	joins := make([][]int32, len(parts))
	for i, part := range parts {
		rank := make([]int, each)
		for j, p := range part {
			rank[j] = gpus[p]
		}
		if each > 3 {
			ring := bestRing(s.between(rank))
			turned := make([]int, each)
			for j, r := range ring {
				turned[j] = rank[r]
			}
			rank = turned
		}
		ranks = append(ranks, rank)
		joins[i] = make([]int32, len(parts))
		for j := range i {
			for _, a := range rank {
				for _, b := range ranks[j] {
					joins[i][j] += s.scores[a][b]
				}
			}
			joins[j][i] = joins[i][j]
		}
	}
	ring := bestRing(joins)
	turned := make([][]int, len(ranks))
	for i, r := range ring {
		turned[i] = ranks[r]
	}
	return turned
}

// between returns the scores of the links between gpus.
func (s *shape) between(gpus []int) [][]int32 {
	scores := make([][]int32, len(gpus))
	for i, a := range gpus {
		scores[i] = make([]int32, len(gpus))
		for j, b := range gpus {
			scores[i][j] = s.scores[a][b]
		}
	}
	return scores
}

// partition divides things into sets of the given size so that the sum of the scores within
// the sets is greatest.
func partition(scores [][]int32, each int) [][]int {
	n := len(scores)
	if each == 1 || each == n {
		var parts [][]int
		for i := 0; i < n; i += each {
			var part []int
			for j := range each {
				part = append(part, i+j)
			}
			parts = append(parts, part)
		}
		return parts
	}
	sums := make([]int32, 1<<n) // the best sum for each subset, plus one; 0 if it is not known yet
	first := make([]uint32, 1<<n)
	within := make([]int32, 1<<n)
	for m := 1; m < 1<<n; m++ {
		low, rest := bits.TrailingZeros(uint(m)), m&(m-1)
		within[m] = within[rest]
		for x := rest; x != 0; x &= x - 1 {
			within[m] += scores[low][bits.TrailingZeros(uint(x))]
		}
	}
	var best func(m uint32) int32
	best = func(m uint32) int32 {
		if m == 0 {
			return 0
		}
		if sums[m] > 0 {
			return sums[m] - 1
		}
		low := m & -m
		rest := m &^ low
		top := int32(-1)
		for x := uint32(0); ; {
			if x = (x - rest) & rest; x == 0 {
				break
			}
			if bits.OnesCount32(x) == each-1 {
				if sum := within[x|low] + best(rest&^x); sum > top {
					top, first[m] = sum, x|low
				}
			}
		}
		sums[m] = top + 1
		return top
	}
	var parts [][]int
	for m := uint32(1<<n - 1); m != 0; m &^= first[m] {
		best(m)
		parts = append(parts, set{uint64(first[m])}.members())
	}
	return parts
}

// bestRing returns things in the order of the best ring through them. That is the ring whose weakest score is
// best and, among such rings, the one with the best sum. The ring begins with the first thing.
func bestRing(scores [][]int32) []int {
	n := len(scores)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n < 4 || len(thresholds(scores)) == 1 || n > exact {
		return order
	}
	rings, ring := ringTable(scores)
	weakest := rings[ring[1<<n-1]]
	// sums has the best sum of a path from the first thing through a subset to an end.
	sums := make([]int32, n<<n)
	for i := range sums {
		sums[i] = -1
	}
	sums[1*n] = 0
	for m := 1; m < 1<<n; m += 2 {
		for end := range n {
			sum := sums[m*n+end]
			if sum < 0 {
				continue
			}
			for to := range n {
				if m>>to&1 == 0 && scores[end][to] >= weakest {
					at := (m|1<<to)*n + to
					sums[at] = max(sums[at], sum+scores[end][to])
				}
			}
		}
	}
	m, end, top := 1<<n-1, 0, int32(-1)
	for i := 1; i < n; i++ {
		if sum := sums[m*n+i]; sum >= 0 && scores[i][0] >= weakest && sum+scores[i][0] > top {
			end, top = i, sum+scores[i][0]
		}
	}
	for at := n - 1; at > 0; at-- {
		order[at] = end
		before := m &^ (1 << end)
		for i := range n {
			if before>>i&1 != 0 && scores[i][end] >= weakest && sums[before*n+i] >= 0 && sums[before*n+i]+scores[i][end] == sums[m*n+end] {
				m, end = before, i
				break
			}
		}
	}
	if order[1] > order[n-1] {
		slices.Reverse(order[1:])
	}
	return order
}
