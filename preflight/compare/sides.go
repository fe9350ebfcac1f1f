package compare

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// Sides returns groups of hosts that see each other's files in the checkpoint directory, the largest group
// first. It leaves out hosts for which it is not known which files they see.
func Sides(facts []job.Facts) (groups [][]string) {
	sees := map[string][]string{}
	for _, f := range facts {
		if f.Shared != nil && f.Check != nil {
			sees[f.Host] = f.Shared.Sees
		}
	}
	for _, f := range facts {
		if _, known := sees[f.Host]; !known {
			continue
		}
		at := slices.IndexFunc(groups, func(g []string) bool {
			return slices.Contains(sees[g[0]], f.Host) && slices.Contains(sees[f.Host], g[0])
		})
		if at < 0 {
			groups = append(groups, []string{f.Host})
		} else {
			groups[at] = append(groups[at], f.Host)
		}
	}
	slices.SortStableFunc(groups, func(a, b []string) int { return len(b) - len(a) })
	return groups
}

// OddSides returns the hosts outside of the largest group, if that group has more than half of
// the hosts. Otherwise it returns all hosts.
func OddSides(groups [][]string) []string {
	all := slices.Concat(groups...)
	if len(groups) > 0 && 2*len(groups[0]) > len(all) {
		return slices.Concat(groups[1:]...)
	}
	return all
}
