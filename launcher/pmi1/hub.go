package pmi1

import "slices"

// Hub merges the barriers of several hosts. It is not safe for concurrent use.
type Hub struct {
	host     map[int]int           // the host of each rank
	hosts    []int                 // the hosts that have ranks
	meetings map[string][]*meeting // the open barriers of each group, in order
}

// meeting is a barrier that some hosts have entered.
type meeting struct {
	missing map[int]bool
	puts    []Pair
}

// NewHub returns a Hub for hosts with the given ranks.
func NewHub(ranksOfHost [][]int) *Hub {
	h := &Hub{host: map[int]int{}, meetings: map[string][]*meeting{}}
	for host, ranks := range ranksOfHost {
		for _, rank := range ranks {
			h.host[rank] = host
		}
		if len(ranks) > 0 {
			h.hosts = append(h.hosts, host)
		}
	}
	return h
}

// Enter records that all ranks of a group on one host have entered a barrier. done is true once every host that
// has a rank of the group has entered. merged then has the entries that the ranks of all these hosts have put.
// The caller must then release the barrier on every host, also on hosts without a rank of the group. A host may
// enter several barriers of a group before another host enters the first. This happens when a controller adopts
// a gang, because it receives all barriers of one host before those of the next host. Enter ignores a group
// that is malformed or has no rank on the host.
func (h *Hub) Enter(host int, name string, entries []Pair) (merged []Pair, done bool) {
	meetings := h.meetings[name]
	i := slices.IndexFunc(meetings, func(m *meeting) bool { return m.missing[host] })
	if i < 0 {
		hosts := h.members(name)
		if !slices.Contains(hosts, host) {
			return nil, false
		}
		m := &meeting{missing: map[int]bool{}}
		for _, one := range hosts {
			m.missing[one] = true
		}
		i, meetings = len(meetings), append(meetings, m)
	}
	m := meetings[i]
	delete(m.missing, host)
	m.puts = append(m.puts, entries...)
	if done = len(m.missing) == 0; done { // this is the first one, because hosts enter them in order
		meetings, merged = meetings[1:], m.puts
	}
	h.meetings[name] = meetings
	if len(meetings) == 0 {
		delete(h.meetings, name)
	}
	return merged, done
}

// members returns the hosts that have a rank of a group.
func (h *Hub) members(name string) []int {
	size := 0
	for rank := range h.host {
		size = max(size, rank+1)
	}
	g, err := parseGroup(name, size)
	if err != nil || g.node {
		return nil
	}
	if g.world {
		return h.hosts
	}
	var hosts []int
	for _, rank := range g.members {
		host, known := h.host[rank]
		if !known {
			return nil
		}
		hosts = append(hosts, host)
	}
	return hosts
}
