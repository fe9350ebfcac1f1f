package launcher

import "github.com/gangrun/gangrun/internal/job"

// saveWatch says whether a host watches the checkpoints that the gang writes.
type saveWatch int

const (
	saveWatchNone  saveWatch = iota
	saveWatchAll             // it does
	saveWatchLocal           // it does if it has a checkpoint directory of its own
)

// watchSaves chooses the hosts that watch the checkpoints: the first, and the first of each other machine that
// may have a directory of its own.
func watchSaves(a job.Attempt, nodes []*node) {
	if !a.Saves || a.Trial() {
		return
	}
	here := false // this machine is watched
	for i, n := range nodes {
		local := n.agent.Link.Local
		switch {
		case i == 0:
			n.saves = saveWatchAll
		case a.OwnDirs && !(local && here):
			n.saves = saveWatchLocal
		}
		here = here || local
	}
}
