// Package leftover finds processes that gangs have left behind on this machine, because their
// agent and its watchdogs were all killed.
//
// Each process of a gang has a tag. Children inherit it from their parents, and keep it when they
// change their environment, session, name or parent. A batch job that a rank has submitted may
// have the environment of the rank, but has no tag. A leftover is a process that has a tag and no
// living agent among its ancestors. The method Find describes one exception.
package leftover

import (
	"slices"
	"strconv"
	"strings"
)

// Process is a process of this machine.
type Process struct {
	PID, Parent int
	Start       uint64 // start time in clock ticks after boot; with PID, it identifies the process
	State       string // a letter, see proc_pid_stat(5)
	Name        string // the name of its program
	Tag         Tag    // zero if the process has none
	Agent       bool   // the process is an agent, or a watchdog of an agent
	Mine        bool   // the process belongs to the calling user
	Gang        string // RUN/ATTEMPT if known; the tag has only a hash of the run
}

// Ended reports whether the process has ended and its parent has not waited for it yet.
func (p Process) Ended() bool { return p.State == "Z" || p.State == "X" }

// Table has the processes with a tag, and all processes above them, by PID.
type Table map[int]Process

// above returns the process pid and its ancestors, as far as t has them.
func (t Table) above(pid int) (pids []int) {
	for p, ok := t[pid]; ok && !slices.Contains(pids, p.PID); p, ok = t[p.Parent] {
		pids = append(pids, p.PID)
	}
	return pids
}

// Find returns the leftovers that the process self should end before it starts a gang of a run. run
// is empty if it is not known. Of other runs, Find returns only leftovers of the user of self.
//
// The process self, its ancestors and its descendants are never leftovers. In general, a descendant of
// a living agent is not a leftover.
//
// If gangrun was started inside a rank, self is a descendant of that rank, and of the rank's agent. Then no
// descendant of that rank is a leftover. That agent may also have taken in processes that the rank had started and
// that lost their parents. Those of them that belong to run are leftovers, although the agent lives.
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

// Alive returns the processes of earlier attempts whose agent still lives and is about to end
// them. An agent above self does not count. gang is the attempt that is about to start; Alive
// returns only processes of the same run.
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

// of returns p. If p belongs to the run, of sets the name of its gang.
func (p Process) of(run string) Process {
	if p.Tag.Of(run) {
		p.Gang = run + "/" + strconv.Itoa(p.Tag.attempt())
	}
	return p
}
