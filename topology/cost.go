package topology

import (
	"cmp"
	"fmt"
	"math"
)

// NoRing is the Bottleneck of a gang that has at most one GPU on each host, and so has no ring.
// It is better than any other Bottleneck.
const NoRing = math.MaxInt32

// Cost is the cost of a placement. Two costs are compared field by field, in this order. Higher
// values of Bottleneck, Links and Left are better; lower values of the other fields are better.
type Cost struct {
	// Racks, Switches and Hosts are the numbers of racks, switches and hosts that the gang uses. Switches with
	// the same name in two racks count as two switches. All hosts without a stated rack count as one rack.
	// Within a rack, all hosts without a stated switch count as connected to one switch.
	Racks    int
	Switches int
	Hosts    int
	// Bottleneck is the score of the weakest link of the gang's rings. The ring of a host goes through all GPUs
	// that the gang has on that host. Of all possible rings, it is one whose weakest link is as strong as
	// possible. The ring of two GPUs is the link between them. If the gang has at most one GPU on each host,
	// Bottleneck is NoRing.
	Bottleneck int
	// Links is the sum of the scores of all links between two of the gang's GPUs on the same
	// host.
	Links int
	// NIC is the sum of the distances of the gang's GPUs to their nearest NICs. The distance is 0 on one board,
	// 1 for PIX, 2 for PXB, 3 for PHB, 4 for NODE, and 5 for SYS or unknown. For a gang of one GPU, NIC is 0,
	// because such a gang sends nothing over a network. Left then decides, not the distance to a NIC.
	NIC int
	// Left is the value of the GPUs that stay free on the gang's hosts, minus the value of the
	// GPUs that were free there before. It is 0 or less.
	//
	// The value of a host's free GPUs is the sum of three numbers. To find the first, the free
	// GPUs are divided into pairs so that the sum of the scores of the pairs' links is as high
	// as possible; the first number is that sum. The second is the number of islands whose GPUs
	// are all free. The third is 1 if all GPUs of the host are free. Scores are multiples of
	// ten, so pairs count more than islands.
	//
	// Two GPUs are in the same island if they are connected, directly or through other GPUs, by
	// links of the strongest class that the host has. All NVLinks are one class. A GPU without
	// such a link is an island of its own. If the host has no link that is PHB or better, the
	// whole host is one island. Busy and sick GPUs belong to islands too, so such an island is
	// not free. A GPU that is divided into MIG instances belongs to no island.
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

// String returns the cost as one line for messages.
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
