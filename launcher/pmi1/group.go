package pmi1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// group is the group of ranks that meet at a barrier.
type group struct {
	name    string // the same name for all spellings of the group; "" for all ranks
	world   bool   // the group has all ranks
	node    bool   // the group has the ranks of one host
	members []int  // the ranks of any other group, in order and without duplicates
	tag     int    // sent back to the rank if tagged is set
	tagged  bool
}

// parseGroup parses the name of a group of PMI-1.2: WORLD, NODE or a list of ranks such as 0,2,5, with an optional
// ":TAG" at the end. Groups with different tags have different barriers.
func parseGroup(text string, size int) (group, error) {
	who, tag, tagged := strings.Cut(text, ":")
	g := group{tagged: tagged}
	suffix := ""
	if tagged {
		n, err := strconv.Atoi(tag)
		if err != nil {
			return group{}, fmt.Errorf("tag %q of group %q must be a number", tag, text)
		}
		if g.tag = n; n != 0 {
			suffix = ":" + strconv.Itoa(n)
		}
	}
	switch who {
	case "", "WORLD":
		g.world = true
		if suffix != "" {
			g.name = "WORLD" + suffix
		}
		return g, nil
	case "NODE":
		g.node, g.name = true, "NODE"+suffix
		return g, nil
	}
	for one := range strings.SplitSeq(who, ",") {
		rank, err := strconv.Atoi(one)
		if err != nil || rank < 0 || rank >= size {
			return group{}, fmt.Errorf("%q of group %q must be a rank from 0 to %d", one, text, size-1)
		}
		g.members = append(g.members, rank)
	}
	slices.Sort(g.members)
	g.members = slices.Compact(g.members)
	var name strings.Builder
	for i, rank := range g.members {
		if i > 0 {
			name.WriteByte(',')
		}
		name.WriteString(strconv.Itoa(rank))
	}
	name.WriteString(suffix)
	g.name = name.String()
	return g, nil
}
