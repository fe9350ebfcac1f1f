// Package topology decides where the ranks of a gang run. Its decisions depend only on an inventory and a
// request. Its functions have no side effects.
package topology

import (
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// NoPlacement is the error of Place and PlaceGPUs when the gang does not fit.
type NoPlacement struct {
	Text, Hint string
	// Ever is true if the gang would fit if no GPU were busy. It can then help to wait. If Ever and
	// Unfit are both false, only another inventory or another request can help.
	Ever bool
	// Unfit is true if some GPUs are sick or excluded. The gang may fit when they can be used
	// again.
	Unfit bool
	// Way lists the busy GPUs that the gang could use if they were not busy. It is set if Ever is true. The
	// GPUs of the host with the most free GPUs come first.
	Way []Blocker
}

// Blocker is a busy GPU that a gang could use if it were not busy.
type Blocker struct {
	Host   string `json:"host"`
	Device string `json:"device"` // UUID
	Busy   string `json:"busy"`   // who uses it, as in job.Device
}

func (e *NoPlacement) Error() string { return e.Text }

// Place assigns ranks without GPUs to hosts. Each host gets a block of consecutive ranks, in
// the order of the inventory, and the blocks are as equal in size as possible. A host that is
// Hard gets at most as many ranks as it has slots. For other hosts, whose slots may be the
// number of cores, Place prefers not to exceed the slots.
func Place(spec job.Spec, inventory job.Inventory, excluded job.Excluded) (job.Placement, job.Explanation, error) {
	var hosts []job.Host
	var why job.Explanation
	for _, h := range inventory.Hosts {
		if slices.Contains(excluded.Hosts, h.Name) {
			why.Why = append(why.Why, fmt.Sprintf("host %s is excluded", h.Name))
		} else if h.Slots > 0 {
			hosts = append(hosts, h)
		}
	}
	shares, err := share(spec.Ranks, hosts)
	if err != nil {
		return job.Placement{}, why, err
	}
	var p job.Placement
	soft := 0
	for i, h := range hosts {
		if shares[i] == 0 {
			continue
		}
		for local := range shares[i] {
			p.Ranks = append(p.Ranks, job.Rank{
				Rank: len(p.Ranks), Host: h.Name, Devices: []string{},
				LocalRank: local, LocalSize: shares[i], Node: len(p.Hosts),
			})
		}
		p.Hosts = append(p.Hosts, h)
		why.Why = append(why.Why, fmt.Sprintf("host %s takes %d of %s on %s", h.Name, shares[i], count(spec.Ranks, "rank"), count(h.Slots, "core")))
		soft += h.Slots
	}
	if spec.Ranks > soft {
		why.Oversubscribed = &job.Oversubscription{Ranks: spec.Ranks, Cores: soft}
		why.Why = append(why.Why, why.Oversubscribed.String())
	}
	return p, why, nil
}

// share divides the ranks among the hosts as evenly as their slots allow. The first hosts get the remainder. If there are
// more ranks than slots, share divides the rest among the hosts that are not Hard.
func share(ranks int, hosts []job.Host) ([]int, error) {
	shares := make([]int, len(hosts))
	all := false // every slot is in use
	for left := ranks; left > 0; {
		var open []int
		for i, h := range hosts {
			if shares[i] < h.Slots || all && !h.Hard {
				open = append(open, i)
			}
		}
		if len(open) == 0 && !all {
			all = true
			continue
		}
		if len(open) == 0 {
			return nil, &NoPlacement{
				Text: fmt.Sprintf("%s %s not fit: %s on %s", count(ranks, "rank"), do(ranks), count(ranks-left, "slot"), count(len(hosts), "host")),
				Hint: "ask for fewer ranks, or for more hosts or slots",
			}
		}
		each := max(1, left/len(open))
		for _, i := range open {
			n := min(each, left)
			if !all || hosts[i].Hard {
				n = min(n, hosts[i].Slots-shares[i])
			}
			shares[i] += n
			left -= n
		}
	}
	return shares, nil
}
