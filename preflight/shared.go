package preflight

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

var checkpointSharedCheck = Check{
	Code:      "checkpoint-shared",
	Asks:      "Is the checkpoint directory of a gang on several machines one for all: does every host see, within 3 s, the file that another has just written into it?",
	DependsOn: []string{"checkpoint-dir"},
	Problems: []Problem{
		{"checkpoint-dir-not-shared", job.SeverityError, job.OutputError,
			"the checkpoint directory {path} is not the same one on every host: {sides}",
			"mount the same file system there on every host, or name a directory on a shared one with --checkpoint-dir; if every rank is to have a directory of its own, use --preflight off"},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		groups := sides(facts)
		if len(groups) < 2 {
			return nil
		}
		var texts, alone []string
		for _, g := range groups {
			if len(g) == 1 {
				alone = append(alone, g[0])
			} else {
				texts = append(texts, names(g)+" share one")
			}
		}
		switch len(alone) {
		case 0:
		case 1:
			texts = append(texts, alone[0]+" has its own")
		default:
			texts = append(texts, names(alone)+" have one each")
		}
		first := facts[slices.IndexFunc(facts, func(f job.Facts) bool { return f.Host == groups[0][0] })].Check.Path
		return []Hit{{Signature: "checkpoint-dir-not-shared", Hosts: oddSides(groups), Path: first, Values: about(first, "sides", strings.Join(texts, "; "))}}
	},
}

// sides returns the hosts that see each other's files in the checkpoint directory,
// side by side, the largest side first; hosts of which that is not known are in none.
func sides(facts []job.Facts) (groups [][]string) {
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

// oddSides returns the hosts that are not on the side of more than half; all where
// there is no such side.
func oddSides(groups [][]string) []string {
	all := slices.Concat(groups...)
	if len(groups) > 0 && 2*len(groups[0]) > len(all) {
		return slices.Concat(groups[1:]...)
	}
	return all
}
