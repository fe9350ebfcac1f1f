// Package leftover finds processes that gangs have left behind on this machine: those
// whose agent and watchdogs were all killed, so that nobody was there to end them.
//
// A process of a gang is known by a tag that children inherit from their parents,
// whatever else a process changes: its environment, its session, its name, its parent.
// What a rank gives its environment to, as a batch system does with a job that the rank
// submits, has no tag. A leftover has a tag, and no agent above it.
package leftover

import (
	"slices"
	"strconv"
	"strings"
)

// Process is a process of this machine.
type Process struct {
	PID, Parent int
	Start       uint64 // clock ticks after boot: with PID, an identity
	State       string // a letter, see proc_pid_stat(5)
	Name        string // that of its program
	Tag         Tag    // zero for none
	Agent       bool   // it is an agent, or one of its watchdogs
	Mine        bool   // it is of the user who asks
	Gang        string // RUN/ATTEMPT, as far as that is known: a tag does not spell it
}

// Ended reports whether the process has ended and its parent has not waited for it yet.
func (p Process) Ended() bool { return p.State == "Z" || p.State == "X" }

// Table is processes by PID: all that have a tag, and all above them.
type Table map[int]Process

// above returns a process and all above it, as far as they are known.
func (t Table) above(pid int) (pids []int) {
	for p, ok := t[pid]; ok && !slices.Contains(pids, p.PID); p, ok = t[p.Parent] {
		pids = append(pids, p.PID)
	}
	return pids
}

// Find returns the leftovers, as the process self may judge them, which is about to start
// a gang of a run; run is empty where that is not known. Those of other runs are of the
// same user.
//
// Neither self nor anything above or below it is one, nor what shares with self a process
// of a gang above both: that has started gangrun itself. Where self runs inside of another
// gang, the agents above it look after what they were given of that, but self knows better
// of its own run.
func (t Table) Find(self int, run string) (found []Process) {
	own := t.above(self)
	for _, p := range t {
		ours := p.Tag.Of(run)
		if p.Tag == 0 || p.Agent || p.Ended() || slices.Contains(own, p.PID) || !p.Mine && !ours {
			continue
		}
		kept := slices.ContainsFunc(t.above(p.PID), func(pid int) bool {
			a, common := t[pid], slices.Contains(own, pid)
			return pid == self || a.Agent && !(common && ours) || common && !a.Agent && a.Tag != 0
		})
		if !kept {
			found = append(found, p.of(run))
		}
	}
	return found
}

// Alive returns the processes of earlier attempts of a run, gang being the one to come,
// that stand below an agent which does not stand above self: it is about to end them.
func (t Table) Alive(self int, gang string) (found []Process) {
	own, tag := t.above(self), TagOf(gang)
	run, _, _ := strings.Cut(gang, "/")
	for _, p := range t {
		if !p.Tag.sameRun(tag) || p.Tag == tag || p.Agent || p.Ended() {
			continue
		}
		other := func(pid int) bool { return !slices.Contains(own, pid) && t[pid].Agent }
		if above := t.above(p.PID); !slices.Contains(above, self) && slices.ContainsFunc(above, other) {
			found = append(found, p.of(run))
		}
	}
	return found
}

// of returns the process with the name of its gang, if that is of the run.
func (p Process) of(run string) Process {
	if p.Tag.Of(run) {
		p.Gang = run + "/" + strconv.Itoa(p.Tag.attempt())
	}
	return p
}
