package topology

import (
	"cmp"
	"fmt"
	"math"
)

// NoRing is the Bottleneck of a gang that has no two GPUs on any host, and so no ring. It
// is better than that of every ring.
const NoRing = math.MaxInt32

// Cost is what a placement costs. Costs are compared field by field, in this order. Of Bottleneck,
// Links and Left a higher value is better, of the other fields a lower one.
type Cost struct {
	// Racks, Switches and Hosts are how many of each the gang uses. Switches of the same
	// name in two racks are two switches. Hosts for which no rack is stated share one rack
	// without a name; hosts of a rack for which no switch is stated share one switch.
	Racks    int
	Switches int
	Hosts    int
	// Bottleneck is the score of the weakest link of the gang's rings. On each host, the gang's
	// ring is the Hamiltonian cycle through its GPUs that has the strongest weakest link; two GPUs
	// have one link. Bottleneck is the weakest of these links over all hosts. If no host has two
	// GPUs, it is NoRing.
	Bottleneck int
	// Links is the sum of the scores of the links between all pairs of chosen GPUs of the
	// same host.
	Links int
	// NIC is the sum over the chosen GPUs of the distance to the nearest NIC: 0 on one
	// board, PIX 1, PXB 2, PHB 3, NODE 4, SYS or unknown 5. It is 0 for a gang of one GPU,
	// which sends nothing over a network. So such a gang takes a GPU that is left over
	// rather than half of a pair near a NIC.
	NIC int
	// Left is how much the value of the free GPUs changes, 0 or less: the value of the GPUs
	// that stay free on the gang's hosts, less the value of those that were free. Other
	// hosts do not change.
	//
	// The value of a set of free GPUs of a host is the greatest sum of link scores over all
	// ways to divide the set into pairs, plus 1 for each island whose GPUs are all free,
	// plus 1 if all GPUs of the host are free. Scores are multiples of ten, so pairs count
	// more than islands.
	//
	// The islands of a host are the connected components of its GPUs under the host's links
	// of the strongest class. All NVLinks are one class. A GPU without such a link is an
	// island of its own. If no link is PHB or better, the whole host is one island. Busy
	// and sick GPUs belong to their islands, which are then not free. A GPU that is divided
	// into MIG instances belongs to no island.
	Left int
}

// Compare returns a negative number if c is better than d, 0 if they are equal, and
// otherwise a positive number.
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

// String returns the cost for messages.
func (c Cost) String() string {
	ring := "no ring"
	if c.Bottleneck != NoRing {
		ring = "ring " + cmp.Or(string(LinkOf(c.Bottleneck)), "not known")
	}
	return fmt.Sprintf("%s, %s, %s, %s, links %d, NIC distance %d, left %d",
		count(c.Racks, "rack"), count(c.Switches, "switch"), count(c.Hosts, "host"), ring, c.Links, c.NIC, c.Left)
}

// do returns the verb for a number of things: "do" or "does".
func do(n int) string {
	if n == 1 {
		return "does"
	}
	return "do"
}

// count returns a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if thing == "switch" {
		return fmt.Sprintf("%d switches", n)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
