package gang

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// reportActivity reports what the living ranks are doing. It is called before they are
// asked to end.
func (g *Gang) reportActivity() {
	var all []job.Activity
	at := hostclock.Now()
	for _, r := range g.ranks {
		pid, ok := r.Living()
		if !ok {
			continue
		}
		begun := g.begun.Add(hostclock.Offset())
		a := job.Activity{Rank: r.number, Host: g.Host, State: activity(pid), Quiet: rounded(r.quiet(at, begun)), Age: rounded(at.Sub(begun))}
		if idle, ok := r.progress.Idle(time.Now()); ok {
			idle := rounded(idle)
			a.Idle = &idle
		}
		all = append(all, a)
	}
	if len(all) > 0 {
		g.Reports.Event(job.Event{Time: at, Kind: job.KindActivity, Host: g.Host, Activity: all})
	}
}

// rounded returns a duration, to the millisecond, that is not negative.
func rounded(d time.Duration) job.Duration { return job.Duration(max(0, d).Round(time.Millisecond)) }

// quiet returns for how long the rank had printed nothing at the time now, by the
// host's clock.
func (r *Rank) quiet(now, begun time.Time) time.Duration {
	last := begun
	for _, s := range []*output.Stream{r.out, r.err} {
		if at := s.Last(); at.After(last) {
			last = at
		}
	}
	return now.Sub(last)
}

// maxWrappers bounds how deep activity looks for the process that a wrapper waits for.
const maxWrappers = 8

// activity returns the state of a process. One that sleeps and has exactly one
// child is taken for a wrapper that waits for it, as a shell does.
func activity(pid int) job.ProcessState {
	state := job.ProcessSleeping
	for range maxWrappers {
		var ok bool
		if state, ok = processState(pid); !ok {
			return job.ProcessZombie // it has just been reaped
		}
		child, ok := onlyChild(pid)
		if state != job.ProcessSleeping || !ok {
			return state
		}
		pid = child
	}
	return state
}

// processState returns the state of a process. ok is false if there is no such process.
func processState(pid int) (state job.ProcessState, ok bool) {
	s, err := procfs.ReadStat(pid)
	if err != nil {
		return "", false
	}
	switch s.State {
	case 'R':
		return job.ProcessRunning, true
	case 'D':
		return job.ProcessDisk, true
	case 'T':
		return job.ProcessStopped, true
	case 't':
		return job.ProcessTraced, true
	case 'Z', 'X':
		return job.ProcessZombie, true
	}
	return job.ProcessSleeping, true
}

// onlyChild returns the child of a process whose main thread has exactly one.
func onlyChild(pid int) (child int, ok bool) {
	data, err := os.ReadFile(procfs.Path(pid, fmt.Sprintf("task/%d/children", pid)))
	if err != nil { // a kernel without CONFIG_PROC_CHILDREN
		return 0, false
	}
	names := strings.Fields(string(data))
	if len(names) != 1 {
		return 0, false
	}
	child, err = strconv.Atoi(names[0])
	return child, err == nil
}
