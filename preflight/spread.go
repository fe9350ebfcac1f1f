package preflight

import (
	"errors"
	"fmt"

	"github.com/gangrun/gangrun/internal/job"
)

// Spread places ranks in blocks, as evenly as the hosts' slots allow, so that
// a trial of two ranks meets what lies between two hosts. Soft slots are gone
// beyond when all others are taken. It chooses no devices.
func Spread(hosts []job.Host, ranks int) (job.Placement, error) {
	if len(hosts) == 0 {
		return job.Placement{}, errors.New("there is no host to place a trial on")
	}
	counts := make([]int, len(hosts))
	for left, beyond := ranks, false; left > 0; {
		before := left
		for i, h := range hosts {
			if left > 0 && (counts[i] < h.Slots || beyond && !h.Hard) {
				counts[i]++
				left--
			}
		}
		if left == before && beyond {
			return job.Placement{}, fmt.Errorf("the hosts have slots for %d of %d ranks", ranks-left, ranks)
		}
		beyond = beyond || left == before
	}
	var p job.Placement
	for i, h := range hosts {
		if counts[i] == 0 {
			continue
		}
		for local := range counts[i] {
			p.Ranks = append(p.Ranks, job.Rank{
				Rank: len(p.Ranks), Host: h.Name, Devices: []string{},
				LocalRank: local, LocalSize: counts[i], Node: len(p.Hosts),
			})
		}
		p.Hosts = append(p.Hosts, h)
	}
	return p, nil
}
