package launcher

import "github.com/gangrun/gangrun/internal/job"

// saveWatch says whether a host watches the checkpoints that the gang writes.
type saveWatch int

const (
	saveWatchNone  saveWatch = iota
	saveWatchAll             // the host watches them
	saveWatchLocal           // the host watches them if it has its own checkpoint directory
)

// watchSaves chooses the hosts that watch the checkpoints. These are the first host, and the first host of each other
// machine that may have its own checkpoint directory.
func watchSaves(a job.Attempt, nodes []*node) {
	if !a.Saves || a.Trial() {
		return
	}
	here := false // a host on this machine watches
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
