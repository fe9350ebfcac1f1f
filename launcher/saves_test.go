package launcher

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/agents"
)

// TestWatchSaves checks that only one host watches the checkpoints in a directory that several hosts share.
func TestWatchSaves(t *testing.T) {
	const none, all, local = saveWatchNone, saveWatchAll, saveWatchLocal
	for name, c := range map[string]struct {
		attempt job.Attempt
		here    []bool // whether each host is on this machine
		want    []saveWatch
	}{
		"one host":                    {job.Attempt{Number: 1, Saves: true}, []bool{true}, []saveWatch{all}},
		"hosts that share it":         {job.Attempt{Number: 1, Saves: true}, []bool{false, false, false}, []saveWatch{all, none, none}},
		"no watch":                    {job.Attempt{Number: 1, OwnDirs: true}, []bool{false, false}, []saveWatch{none, none}},
		"a trial":                     {job.Attempt{Saves: true, OwnDirs: true}, []bool{false, false}, []saveWatch{none, none}},
		"not checked":                 {job.Attempt{Number: 1, Saves: true, OwnDirs: true}, []bool{false, false, false}, []saveWatch{all, local, local}},
		"not checked, simulated":      {job.Attempt{Number: 1, Saves: true, OwnDirs: true}, []bool{true, true, true}, []saveWatch{all, none, none}},
		"not checked, here and there": {job.Attempt{Number: 1, Saves: true, OwnDirs: true}, []bool{false, true, false, true}, []saveWatch{all, local, local, none}},
	} {
		var nodes []*node
		for _, here := range c.here {
			a := &agents.Agent{}
			a.Link.Local = here
			nodes = append(nodes, &node{agent: a})
		}
		watchSaves(c.attempt, nodes)
		var got []saveWatch
		for _, n := range nodes {
			got = append(got, n.saves)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
