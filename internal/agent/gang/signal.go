package gang

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// pass sends a signal to each rank that handles it. The process of a rank may not handle the signal, for instance
// because it is a shell around the program. The signal then goes to the nearest descendants that handle it. It never
// goes to a process that it would end.
func (g *Gang) pass(sig unix.Signal) {
	got, living := 0, 0
	for _, r := range g.ranks {
		pid, ok := r.Living()
		if !ok {
			continue
		}
		living++
		found := handlers(pid, sig)
		for _, p := range found {
			p.Signal(sig)
		}
		if len(found) > 0 {
			got++
		}
	}
	text := fmt.Sprintf("%s went to %d of the %d ranks on %s: the others do not handle it", unix.SignalName(sig), got, living, g.Host)
	if got == living {
		text = fmt.Sprintf("%s went to the ranks on %s", unix.SignalName(sig), g.Host)
	}
	g.Reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindSignal, Host: g.Host, Reached: &got, Text: text})
}

// handlers returns the process if it handles a signal. Otherwise, it returns the first process on each branch of the
// descendants that handles the signal.
func handlers(pid int, sig unix.Signal) (found []process.Process) {
	p, ok := process.Read(pid)
	if !ok {
		return nil
	}
	if process.Handles(pid, sig) {
		return []process.Process{p}
	}
	passed := map[int]bool{}                     // processes whose descendants must not get the signal
	for _, d := range process.Descendants(pid) { // parents come first
		if passed[d.Parent] {
			passed[d.PID] = true
		} else if process.Handles(d.PID, sig) {
			passed[d.PID] = true
			found = append(found, d)
		}
	}
	return found
}
