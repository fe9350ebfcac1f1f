package mpiexec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/topology/inventory"
)

// Turn is a host and the number of ranks that it takes before the next host's turn.
type Turn struct {
	Host  string
	Ranks int
}

// Turns returns the hosts in the order in which they take ranks. If there are none, gangrun
// places the ranks as it does for other jobs.
func (a Args) Turns(own Here) ([]Turn, error) {
	var turns []Turn
	for _, h := range a.hosts {
		switch {
		case a.loopback == 0 && own.is(h.name):
			turns = append(turns, Turn{own.name, a.turn(h)})
		case a.loopback > 0 && !slices.Contains(hostlist.Simulated(a.loopback), h.name):
			return nil, failure.Usage(fmt.Sprintf("with -loopback %d the hosts are h1 to h%d", a.loopback, a.loopback), "mpiexec: there is no simulated host %q", h.name)
		default:
			turns = append(turns, Turn{h.bare(), a.turn(h)})
		}
	}
	if len(turns) == 0 && a.perHost > 0 {
		for _, name := range hostlist.Simulated(a.loopback) {
			turns = append(turns, Turn{name, a.perHost})
		}
	}
	return turns, nil
}

// Hosts returns the list of hosts for a job. Each host is in it once, with the sum of the ranks
// of its turns as slots. The list is empty if all ranks run on this machine or on simulated
// hosts.
func (a Args) Hosts(own Here) (string, error) {
	here := !slices.ContainsFunc(a.hosts, func(h host) bool { return !own.is(h.name) })
	if a.loopback > 0 || len(a.hosts) == 0 || here && !a.allocated {
		return "", nil
	}
	var names []string
	slots := map[string]int{}
	for _, h := range a.hosts {
		if own.is(h.name) {
			h.name = own.name
		}
		if _, known := slots[h.name]; !known {
			names = append(names, h.name)
		}
		slots[h.name] = min(slots[h.name]+a.turn(h), job.MaxRanks)
	}
	var words []string
	for _, name := range names {
		host := host{name: name}.bare()
		user, word := strings.TrimSuffix(name, host), host
		if strings.Contains(host, ":") {
			word = "[" + host + "]"
		}
		words = append(words, fmt.Sprintf("%s%s:%d", user, word, slots[name]))
	}
	text := strings.Join(words, ",")
	list, err := inventory.Hosts(text)
	if err == nil && len(list.Hosts) == len(names) && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(list.Hosts, func(h job.Host) bool { return h.Name == host{name: name}.bare() })
	}) {
		return text, nil
	}
	return "", failure.Usage("write names or addresses, each host in one way alone", "mpiexec: not all of %q are hosts", names)
}

// Here says which of the hosts of a command line are this machine.
type Here struct {
	name string // of this machine, for the placement
	is   func(name string) bool
}

// Here finds out which of the hosts are this machine.
func (a Args) Here(s thishost.Matcher) Here {
	if a.loopback > 0 || len(a.hosts) == 0 {
		return Here{thishost.Name(), func(string) bool { return false }}
	}
	var hosts []job.Host
	for _, h := range a.hosts {
		hosts = append(hosts, job.Host{Name: h.name, Address: h.name})
	}
	own := s.Among(context.Background(), hosts)
	return Here{s.Called(context.Background()), func(name string) bool { return own[name] }}
}

// Deal gives ranks to hosts. Turn by turn, it gives the host of the turn as many ranks as the
// turn has. After the last turn it begins again with the first. Every turn must have at least
// one rank and name one of the hosts.
func Deal(ranks int, turns []Turn, hosts []job.Host) job.Placement {
	var p job.Placement
	nodes, sizes := map[string]int{}, map[string]int{}
	for i := 0; len(p.Ranks) < ranks; i++ {
		t := turns[i%len(turns)]
		if _, known := nodes[t.Host]; !known {
			nodes[t.Host] = len(p.Hosts)
			p.Hosts = append(p.Hosts, hosts[slices.IndexFunc(hosts, func(h job.Host) bool { return h.Name == t.Host })])
		}
		for range min(t.Ranks, ranks-len(p.Ranks)) {
			p.Ranks = append(p.Ranks, job.Rank{Rank: len(p.Ranks), Host: t.Host, Devices: []string{}, LocalRank: sizes[t.Host], Node: nodes[t.Host]})
			sizes[t.Host]++
		}
	}
	for i := range p.Ranks {
		p.Ranks[i].LocalSize = sizes[p.Ranks[i].Host]
	}
	return p
}
