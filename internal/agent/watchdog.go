package agent

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/box"
	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/watchdog"
)

// cleanUp is what a watchdog does when the process below it has ended. The processes that the agent has left are then
// children of the watchdog, which is the next subreaper above them. The inner watchdog kills them. If the inner
// watchdog was killed, the outer watchdog kills them. cleanUp returns the exit code.
func cleanUp(end watchdog.End) (code int, err error) {
	if !end.Inner {
		if end.Status.Exited() { // the inner watchdog has already cleaned up
			return end.Status.ExitStatus(), nil
		}
		reapOrphan(end.Agent)
	}
	sweep(end.Agent)
	tempfiles.Remove(end.Agent)
	endDead()
	switch {
	case end.Status.Exited() && end.Status.ExitStatus() == watchdog.Unswept:
		return 0, nil
	case end.Status.Exited():
		return end.Status.ExitStatus(), nil
	case end.Inner:
		return 70, fmt.Errorf("the agent was ended by signal %d", end.Status.Signal())
	default:
		return 70, errors.New("the watchdog below this one was killed")
	}
}

// endDead removes what was left on this host by agents that were killed together with their watchdogs.
func endDead() {
	tempfiles.RemoveUnlocked(layerPrefix, os.Remove)
	box.EndDead()
	cgroup.EndDead()
}

// orphanLimit limits the wait for the end of an agent whose inner watchdog was killed. The agent has endLimit for its
// ranks, and the same time again to clean up.
const orphanLimit = 2 * endLimit

// reapOrphan waits for the end of an agent that has become a child of this process. The agent
// ends its ranks because its own watchdog is gone.
func reapOrphan(agent int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(orphanLimit); time.Now().Before(deadline); <-tick.C {
		if p, ok := process.Read(agent); !ok || p.Parent != os.Getpid() || p.Zombie {
			return
		}
		var status unix.WaitStatus
		if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); pid == agent || err == unix.ECHILD {
			return
		}
	}
}

// sweep kills and reaps every process below this one. It also removes the cgroup of the agent that had the PID agent.
func sweep(agent int) {
	group := cgroup.Open(agent)
	for deadline := time.Now().Add(process.KillLimit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.ECHILD {
			break
		}
		if pid > 0 {
			continue
		}
		process.KillRound(group)
	}
	group.Close()
}
