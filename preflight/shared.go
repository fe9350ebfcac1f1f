package preflight

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/compare"
)

var checkpointSharedCheck = Check{
	Code:      "checkpoint-shared",
	Asks:      "Do all hosts of a gang have the same checkpoint directory? Each must see, within 3 s, a file that another host has just written into it.",
	DependsOn: []string{"checkpoint-dir"},
	Problems: []Problem{
		{"checkpoint-dir-not-shared", job.SeverityError, job.OutputError,
			"the checkpoint directory {path} is not the same one on every host: {sides}",
			"mount the same file system there on every host, or name a directory on a shared one with --checkpoint-dir; if every rank is to have a directory of its own, use --preflight off"},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		groups := compare.Sides(facts)
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
		return []Hit{{Signature: "checkpoint-dir-not-shared", Hosts: compare.OddSides(groups), Path: first, Values: about(first, "sides", strings.Join(texts, "; "))}}
	},
}
