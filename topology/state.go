package topology

import (
	"cmp"
	"math/bits"
	"slices"
)

// set is a set of GPUs of a shape, by number. Only the first widest GPUs of a host are used.
type set [2]uint64

// widest is the number of GPUs that a set can have.
const widest = 128

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s *set) add(i int)     { s[i/64] |= 1 << (i % 64) }
func (s *set) drop(i int)    { s[i/64] &^= 1 << (i % 64) }
func (s set) count() int     { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }
func (s set) without(t set) set {
	return set{s[0] &^ t[0], s[1] &^ t[1]}
}

// members returns the GPUs of the set in ascending order.
func (s set) members() []int {
	list := make([]int, 0, s.count())
	for w, m := range s {
		for ; m != 0; m &= m - 1 {
			list = append(list, w*64+bits.TrailingZeros64(m))
		}
	}
	return list
}

// vec is the part of a cost that adds up over hosts. Lower values are better in each field: -links,
// NIC distances, -left, and a number that only breaks ties.
//
// To get that number, consider the best-connected sets of GPUs of each size. The number is the sum
// of sizeLost for each size of such a set that the hosts' free GPUs contained before and do not
// contain any more, and 1 for each GPU that stays free. It is needed because Left only counts
// pairs: without it, breaking the last free set of four would cost nothing. The sizes are not known
// for a wide shape.
type vec [4]int32

// sizeLost is greater than the number of GPUs of any host that has tables.
const sizeLost = 100

func (v vec) plus(w vec) vec {
	return vec{v[0] + w[0], v[1] + w[1], v[2] + w[2], v[3] + w[3]}
}

func (v *vec) compare(w *vec) int {
	for i := range v {
		if v[i] != w[i] {
			return cmp.Compare(v[i], w[i])
		}
	}
	return 0
}

// option is one way in which a host can give some of its GPUs to a gang.
type option struct {
	ring int32
	vec  vec
	set  set
}

// stateKey has the properties in which two hosts must be equal to look the same to a gang.
type stateKey struct {
	shape *shape
	free  set
	cap   int
}

// state has what a host can give to a gang. Hosts that look the same share it.
type state struct {
	stateKey
	// options has, for each number of ranks, the options that can be part of a best plan. The first option has
	// the best ring. Each further option has a weaker ring, but a better vec.
	options [][]option
}

// newState tries every set of free GPUs for 1 to most ranks of gpus GPUs each. alone is true if the gang has
// one GPU. The distance to a NIC then does not matter.
func newState(key stateKey, gpus, most int, alone bool) *state {
	s := &state{stateKey: key}
	most = min(most, key.cap)
	s.options = make([][]option, most+1)
	s.ways(func(size int) bool { return size%gpus == 0 && size <= most*gpus }, most*gpus, func(size int, o option) {
		if alone {
			o.vec[1] = 0
		}
		s.offer(size/gpus, o)
	})
	for ranks, list := range s.options {
		slices.SortFunc(list, func(a, b option) int { return cmp.Compare(b.ring, a.ring) })
		kept := list[:0]
		for _, o := range list {
			if len(kept) == 0 || o.vec.compare(&kept[len(kept)-1].vec) < 0 {
				kept = append(kept, o)
			}
		}
		s.options[ranks] = kept
	}
	return s
}

// ways yields the sets of at most most GPUs for whose size right returns true. For a wide shape, it yields only
// some good ones of these sets. Sets of equal cost come in a fixed order.
func (k stateKey) ways(right func(size int) bool, most int, yield func(size int, o option)) {
	s, free := k.shape, k.free.count()
	if s.ring != nil {
		all := k.free[0]
		for m := all & -all; m != 0; m = (m - all) & all { // every subset, in ascending order
			if size := bits.OnesCount64(m); right(size) {
				lost := bits.OnesCount16(uint16(s.holds[all] &^ s.holds[all&^m]))
				last := int32(sizeLost*lost + free - size)
				yield(size, option{s.rings[s.ring[m]], vec{-s.links[m], s.far[m], s.value[all] - s.value[all&^m], last}, set{m}})
			}
		}
		return
	}
	before := s.wideValue(k.free)
	s.grow(k.free, most, func(chosen set, size int, ring, links, far int32) {
		if right(size) {
			taken := max(0, before-s.wideValue(k.free.without(chosen)))
			yield(size, option{ring, vec{-links, far, taken, int32(free - size)}, chosen})
		}
	})
}

// offer stores an option if it is the best one with its ring.
func (s *state) offer(ranks int, o option) {
	list := s.options[ranks]
	for i := range list {
		if list[i].ring == o.ring {
			if o.vec.compare(&list[i].vec) < 0 {
				list[i] = o
			}
			return
		}
	}
	s.options[ranks] = append(list, o)
}

// best returns the best option for a number of ranks whose ring is at least as good as ring. It returns nil if
// there is none.
func (s *state) best(ranks int, ring int32) *option {
	if ranks >= len(s.options) {
		return nil
	}
	list := s.options[ranks]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].ring >= ring {
			return &list[i]
		}
	}
	return nil
}

// most returns the largest number of ranks that the host can take with a ring that is at least as good as ring.
func (s *state) most(ring int32) int {
	for ranks := len(s.options) - 1; ranks > 0; ranks-- {
		if s.best(ranks, ring) != nil {
			return ranks
		}
	}
	return 0
}

// joined says how well a set of GPUs is connected. Greater values are better.
type joined struct{ ring, links int32 }

func (j joined) compare(k joined) int {
	return cmp.Or(cmp.Compare(j.ring, k.ring), cmp.Compare(j.links, k.links))
}

// bestJoined returns how well the best set of the given size is connected. It considers the GPUs in among.
func (s *shape) bestJoined(among set, size int) joined {
	best := joined{-1, -1}
	stateKey{shape: s, free: among}.ways(func(n int) bool { return n == size }, size, func(_ int, o option) {
		if j := (joined{o.ring, -o.vec[0]}); j.compare(best) > 0 {
			best = j
		}
	})
	return best
}

func sortDescending(values []int32) {
	slices.SortFunc(values, func(a, b int32) int { return cmp.Compare(b, a) })
}

// ringOf returns the bottleneck of a set that is one of the options.
func (s *state) ringOf(chosen set) int32 {
	for _, list := range s.options {
		for _, o := range list {
			if o.set == chosen {
				return o.ring
			}
		}
	}
	return 0
}
