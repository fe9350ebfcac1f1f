package topology

import (
	"cmp"
	"fmt"
	"strings"
)

// facts has what the sentences about a choice need besides its Cost. It counts only the hosts that the choice
// uses.
type facts struct {
	pairs         census // links between all pairs of the gang's GPUs that are on the same host
	nics          census // links between the gang's GPUs and their nearest NICs
	before, after spare  // what was free before, and what stays free
}

// spare says for what free GPUs can be used: the best way to divide them into pairs, and the number of islands
// and hosts that are completely free.
type spare struct {
	pairs          census
	islands, hosts int
}

// facts returns the facts of a plan.
func (s *survey) facts(p *plan) facts {
	f := facts{pairs: census{}, nics: census{}, before: spare{pairs: census{}}, after: spare{pairs: census{}}}
	for _, pick := range p.picks {
		v := &s.views[pick.view]
		gpus, places := pick.set.members(), whole(v.host)
		for i, a := range gpus {
			for _, b := range gpus[:i] {
				f.pairs[v.shape.scores[a][b]]++
			}
			f.nics[nearest(v.host, places[a])]++
		}
		f.before.add(v.shape, v.free)
		f.after.add(v.shape, v.free.without(pick.set))
	}
	return f
}

// add adds the free GPUs of another host.
func (sp *spare) add(s *shape, free set) {
	s.match(free, func(score int32) {
		if score > 0 {
			sp.pairs[score]++
		}
	})
	islands, hosts := s.intact(free)
	sp.islands, sp.hosts = sp.islands+islands, sp.hosts+hosts
}

// minus returns the pairs, islands and hosts of sp that are more than those of other.
func (sp spare) minus(other spare) spare {
	more := spare{census{}, max(0, sp.islands-other.islands), max(0, sp.hosts-other.hosts)}
	for score, n := range sp.pairs {
		if n > other.pairs[score] {
			more.pairs[score] = n - other.pairs[score]
		}
	}
	return more
}

func (sp spare) words(explained map[int32]bool) string {
	var parts []string
	if len(sp.pairs) > 0 {
		parts = append(parts, sp.pairs.words("pair", explained))
	}
	if sp.islands > 0 {
		parts = append(parts, count(sp.islands, "whole island"))
	}
	if sp.hosts > 0 {
		parts = append(parts, count(sp.hosts, "whole host"))
	}
	return strings.Join(parts, ", ")
}

// taken says what the choice takes from the free GPUs. The GPUs that stay free may form pairs that did not
// exist before.
func (f facts) taken(explained map[int32]bool) string {
	text := cmp.Or(f.before.minus(f.after).words(explained), "nothing")
	if back := f.after.minus(f.before).words(explained); back != "" {
		text += ", but leaves " + back
	}
	return text
}

// Words describes the cost of a choice in sentences, in the order of the fields of Cost. The sentences name and
// describe the links.
func (c Choice) Words() []string {
	explained := map[int32]bool{}
	says := []string{fmt.Sprintf("%s, %s, %s", count(c.Cost.Racks, "rack"), count(c.Cost.Switches, "switch"), count(c.Cost.Hosts, "host"))}
	if c.facts.nics == nil {
		return says // a gang without GPUs
	}
	if c.gpus() > 1 {
		each := ""
		if c.Cost.Hosts > 1 {
			each = " of one host"
		}
		if c.Cost.Bottleneck == NoRing {
			says = append(says, "no two of its GPUs share a host")
		} else {
			says = append(says,
				"slowest link on the best ring through its GPUs"+each+": "+linkText(int32(c.Cost.Bottleneck), explained),
				"its pairs of GPUs"+each+": "+c.facts.pairs.words("", explained))
		}
		says = append(says, "its nearest NICs: "+nicWords(c.facts.nics, explained))
	}
	return append(says, "it takes from the pairs, islands and hosts that are free: "+c.facts.taken(explained))
}

// gpus returns the number of GPUs of the gang.
func (c Choice) gpus() int {
	n := 0
	for _, r := range c.Placement.Ranks {
		n += len(r.Devices)
	}
	return n
}

// UnknownLinks returns the number of pairs of the gang's GPUs that are on the same host and whose link is
// unknown. An unknown link counts as the weakest link.
func (c Choice) UnknownLinks() int { return c.facts.pairs[0] }

func nicWords(nics census, explained map[int32]bool) string {
	if len(nics) == 1 && nics[0] > 0 {
		return "not known"
	}
	return nics.words("", explained)
}

// differ describes the differences between two choices for a gang, in the order of the fields of Cost.
func differ(c, other Choice) []string {
	explained := map[int32]bool{}
	ring := func(c Choice) string {
		if c.Cost.Bottleneck == NoRing {
			return "none, as no two GPUs share a host,"
		}
		return linkText(int32(c.Cost.Bottleneck), explained)
	}
	pairs := func(c Choice) string { return cmp.Or(c.facts.pairs.words("", explained), "none, as none share a host") }
	a, b := c.Cost, other.Cost
	var says []string
	if a.Racks != b.Racks {
		says = append(says, fmt.Sprintf("%s instead of %d", count(a.Racks, "rack"), b.Racks))
	}
	if a.Switches != b.Switches {
		says = append(says, fmt.Sprintf("%s instead of %d", count(a.Switches, "switch"), b.Switches))
	}
	if a.Hosts != b.Hosts {
		says = append(says, fmt.Sprintf("%s instead of %d", count(a.Hosts, "host"), b.Hosts))
	}
	if a.Bottleneck != b.Bottleneck {
		says = append(says, fmt.Sprintf("the slowest link on the ring through its GPUs is %s instead of %s", ring(c), ring(other)))
	}
	if a.Links != b.Links {
		says = append(says, fmt.Sprintf("its pairs of GPUs are joined: %s, instead of %s", pairs(c), pairs(other)))
	}
	if a.NIC != b.NIC {
		says = append(says, fmt.Sprintf("the nearest NICs of its GPUs are %s instead of %s", nicWords(c.facts.nics, explained), nicWords(other.facts.nics, explained)))
	}
	if a.Left != b.Left {
		says = append(says, fmt.Sprintf("it takes from the pairs, islands and hosts that are free: %s, instead of %s", c.facts.taken(explained), other.facts.taken(explained)))
	}
	return says
}
