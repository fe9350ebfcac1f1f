package topology

import (
	"cmp"
	"fmt"
	"math"
)

// NoRing is the bottleneck of a gang that has no ring: one that has no two GPUs
// on any host. It is better than that of every ring.
const NoRing = math.MaxInt32

// Cost is what is compared between placements, field by field in this order.
type Cost struct {
	// Racks, Switches and Hosts are how many the gang touches. A switch is of one
	// rack: one name in two racks is two switches. Hosts that name no rack, or no
	// switch of their rack, share one that has no name.
	Racks    int
	Switches int
	Hosts    int
	// Bottleneck is the weakest, over the hosts, of the strongest weakest link on
	// any ring (Hamiltonian cycle) through the host's chosen GPUs, as a link's
	// score. Two GPUs have one link, one GPU has NoRing.
	Bottleneck int
	// Links is the sum of the scores of the links between all pairs of chosen
	// GPUs that share a host.
	Links int
	// NIC is the sum over the chosen GPUs of the distance to the nearest NIC: 0 on
	// one board, PIX 1, PXB 2, PHB 3, NODE 4, SYS or not known 5. A gang of one
	// GPU sends to nobody: its NIC is 0, so that it takes a leftover rather than
	// the half of a pair that has a NIC.
	NIC int
	// Left is what the gang takes away from what stays free, 0 or less: the value
	// of what stays free on the touched hosts, less its value before. (The other
	// hosts stay as they are, so this orders placements as the value of all that
	// stays free in the inventory does.) The value of a set of free GPUs of a host
	// is the sum of link scores of the best matching, which is the best way of
	// dividing it into pairs, plus 1 for each island whose GPUs are all free, plus
	// 1 if all GPUs of the host are. Scores are multiples of ten, so that on a host
	// pairs come first.
	//
	// The islands of a host are the connected components of its GPUs under its
	// links of the strongest class, all NVLinks being one class, where that class
	// is PHB or better; a GPU that has no such link is an island of its own. Where
	// no link is PHB or better the host is one island. Busy and sick GPUs belong to
	// their islands, which are then not free; a GPU that is cut into MIG instances
	// belongs to none.
	Left int
}

// Compare is negative where c is better than d, and 0 where they are equal.
func (c Cost) Compare(d Cost) int {
	return cmp.Or(
		cmp.Compare(c.Racks, d.Racks),
		cmp.Compare(c.Switches, d.Switches),
		cmp.Compare(c.Hosts, d.Hosts),
		cmp.Compare(d.Bottleneck, c.Bottleneck),
		cmp.Compare(d.Links, c.Links),
		cmp.Compare(c.NIC, d.NIC),
		cmp.Compare(d.Left, c.Left),
	)
}

// String writes the cost for people.
func (c Cost) String() string {
	ring := "no ring"
	if c.Bottleneck != NoRing {
		ring = "ring " + cmp.Or(string(LinkOf(c.Bottleneck)), "not known")
	}
	return fmt.Sprintf("%s, %s, %s, %s, links %d, NIC distance %d, left %d",
		count(c.Racks, "rack"), count(c.Switches, "switch"), count(c.Hosts, "host"), ring, c.Links, c.NIC, c.Left)
}

// do is the verb of a number of things.
func do(n int) string {
	if n == 1 {
		return "does"
	}
	return "do"
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if thing == "switch" {
		return fmt.Sprintf("%d switches", n)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
