// Package plan decides where a gang would be placed, for "gangrun plan", which starts nothing.
package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/inventory"
)

// Gang is a gang that is to be placed.
type Gang struct {
	Ranks    int
	GPUs     int // of each rank; -1 means 1 if the hosts have GPUs, otherwise 0
	Locality job.Locality
}

// OnGPUs returns the number of GPUs that each rank gets on these hosts.
func (g Gang) OnGPUs(hosts []job.Host) int { return topology.GPUsPerRank(g.GPUs, hosts) }

// Missing returns a note for each fact that the list of hosts lacks. The note says what the
// plan assumes instead.
func (g Gang) Missing(l hostlist.List) []string {
	if l.Own != nil {
		return nil
	}
	gpus := g.OnGPUs(l.Hosts)
	var notes, blind, open []string
	for _, h := range l.Hosts {
		if len(h.Devices) == 0 {
			blind = append(blind, h.Name)
		}
		if h.Slots == 0 {
			open = append(open, h.Name)
		}
	}
	if l.Kind != inventory.Inventory && g.GPUs != 0 {
		notes = append(notes, fmt.Sprintf("what GPUs %s cannot be seen from here; an inventory tells of them (--inventory)", have(blind)))
	} else if gpus > 0 && len(blind) > 0 {
		notes = append(notes, fmt.Sprintf("the list tells of no GPUs of %s: not used", text.Some(blind, 6)))
	}
	if gpus == 0 && len(open) > 0 {
		each := "it counts as one slot, and takes"
		if len(open) > 1 {
			each = "each counts as one slot, and takes"
		}
		notes = append(notes, fmt.Sprintf("slots of %s are not stated: %s more ranks where there is no other room", text.Some(open, 6), each))
	}
	return notes
}

// have returns "h1 has" or "h1, h2 have".
func have(names []string) string {
	if len(names) == 1 {
		return names[0] + " has"
	}
	return text.Some(names, 6) + " have"
}

// Place puts the gang on hosts. Its errors have exit codes (see failure.Error).
func (g Gang) Place(hosts []job.Host) (topology.Choice, error) {
	var choice topology.Choice
	var err error
	switch gpus := g.OnGPUs(hosts); {
	case gpus > 0:
		choice, err = topology.PlaceGPUs(topology.Want{Ranks: g.Ranks, GPUs: gpus, Locality: g.Locality}, job.Inventory{Hosts: hosts}, job.Excluded{})
	case g.Locality != "" && g.Locality != job.LocalityAny:
		return choice, failure.Usage("leave --locality out, or give hosts with GPUs", "--locality %s is about GPUs, and the gang has none", g.Locality)
	default:
		choice, err = placeOnSlots(g.Ranks, hosts)
	}
	var no *topology.NoPlacement
	if errors.As(err, &no) {
		err = &failure.Error{Code: failure.CodeNoPlacement, Err: no, Hint: no.Hint}
	}
	return choice, err
}

// placeOnSlots places ranks without GPUs; a host without slots has one.
func placeOnSlots(ranks int, hosts []job.Host) (topology.Choice, error) {
	hosts = slices.Clone(hosts)
	soft, hard := 0, true
	for i := range hosts {
		hosts[i].Slots = max(1, hosts[i].Slots)
		soft += hosts[i].Slots
		hard = hard && hosts[i].Hard
	}
	placement, _, err := topology.Place(job.Spec{Ranks: ranks}, job.Inventory{Hosts: hosts}, job.Excluded{})
	if err != nil {
		return topology.Choice{}, err
	}
	racks, switches := map[string]bool{}, map[[2]string]bool{}
	for _, h := range placement.Hosts {
		racks[h.Rack], switches[[2]string{h.Rack, h.Switch}] = true, true
	}
	c := topology.Choice{
		Placement: placement, Level: job.LocalityAny,
		Cost: topology.Cost{Racks: len(racks), Switches: len(switches), Hosts: len(placement.Hosts), Bottleneck: topology.NoRing},
		Why:  []string{"ranks without GPUs are dealt evenly over the slots of the hosts, in the order of the list"},
	}
	switch {
	case len(placement.Hosts) == 1:
		c.Level = job.LocalityHost
	case len(racks) == 1:
		c.Level = job.LocalityRack
	}
	if !hard && ranks > soft {
		c.Why = append(c.Why, fmt.Sprintf("%s share %s", text.Count(ranks, "rank"), text.Count(soft, "slot")))
	}
	return c, nil
}
