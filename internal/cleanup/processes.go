package cleanup

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/leftover"
)

// leftoverLimit bounds the wait for the end of processes that were killed.
const leftoverLimit = 10 * time.Second

// EndProcesses ends the processes that gangs have left behind on this machine, and returns the
// processes that it has killed and those that do not end. If dry is true, EndProcesses kills
// nothing; killed then has the processes that it would kill.
func EndProcesses(ctx context.Context, dry bool) (killed, left []leftover.Process) {
	if dry {
		return leftover.Read(os.Getpid()).Find(os.Getpid(), ""), nil
	}
	return leftover.End(ctx, os.Getpid(), "", leftoverLimit)
}

// leftBy returns words that say which attempt has left a process, if that is known.
func leftBy(p leftover.Process) string {
	if p.Gang == "" {
		return "which a dead run has left"
	}
	return "which was left of attempt " + p.Gang
}

// addTo returns list with the processes and containers that each run has left. It adds an entry at the end for each run
// that is not in list.
func (e ended) addTo(list []removed) []removed {
	list = slices.Clone(list)
	of := func(gang string) *removed {
		run, _, _ := strings.Cut(gang, "/")
		i := slices.IndexFunc(list, func(r removed) bool { return r.Run == run })
		if i < 0 {
			i, list = len(list), append(list, removed{Run: run, State: job.StateLost})
		}
		return &list[i]
	}
	for _, p := range e.killed {
		r := of(p.Gang)
		r.Processes = append(r.Processes, p.PID)
	}
	for _, c := range e.containers {
		r := of(c.Gang)
		r.Containers = append(r.Containers, c.ID)
	}
	return list
}

// StillRunning returns an error that names the processes in left, which do not end. It returns nil
// if left is empty.
func StillRunning(left []leftover.Process) error {
	if len(left) == 0 {
		return nil
	}
	var names []string
	for _, p := range left {
		names = append(names, fmt.Sprintf("%d (%s, state %s)", p.PID, p.Name, p.State))
	}
	return &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("processes that gangs have left behind do not end within %s of SIGKILL: %s", leftoverLimit, strings.Join(names, ", ")),
		Hint: "state D is a wait for a device or file system that does not answer: look at what it waits for with \"cat /proc/PID/stack\" as root"}
}
