package pmi1

import (
	"fmt"
	"strings"
)

// Mapping returns the value of PMI_process_mapping, or "" if it would be too long. nodes[rank]
// is the number of the rank's node. The value consists of triplets (first node, number of
// nodes, ranks on each node), because MPICH 4.0.2 crashes on any other form.
func Mapping(nodes []int) string {
	if len(nodes) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("(vector")
	for i := 0; i < len(nodes); {
		ranks := run(nodes[i:])
		next, count := i+ranks, 1
		for next < len(nodes) && nodes[next] == nodes[i]+count && run(nodes[next:]) == ranks {
			next += ranks
			count++
		}
		fmt.Fprintf(&b, ",(%d,%d,%d)", nodes[i], count, ranks)
		i = next
	}
	b.WriteByte(')')
	if b.Len() > maxAnswer {
		return ""
	}
	return b.String()
}

// run returns how many elements at the start of nodes are equal to the first one.
func run(nodes []int) int {
	n := 1
	for n < len(nodes) && nodes[n] == nodes[0] {
		n++
	}
	return n
}
