// Package leftover finds processes that gangs have left behind on this machine: those
// whose agent and watchdogs were all killed, so that nobody was there to end them.
//
// A process of a gang is known by a variable in its environment, Env. That alone does
// not make it a leftover: a rank may hand its environment on to what lives by right, as
// sbatch does. A leftover is also in the control group in which its agent was, and was
// given to a process that the kernel gives orphans to; and so is what stands below such a one.
package leftover

import (
	"slices"
	"strings"
)

// Env is the variable that marks the processes of a gang; Mark returns it with its value.
const Env = "GANGRUN_GANG"

// Process is a process of this machine.
type Process struct {
	PID, Parent int
	Start       uint64 // clock ticks after boot: with PID, an identity
	State       string // a letter, see proc_pid_stat(5)
	Name        string // that of its program
	Gang        string // of a leftover: the gang, RUN/ATTEMPT, that it is from
}

// ended reports whether only the process's parent has still to be told of its end.
func (p Process) ended() bool { return p.State == "Z" || p.State == "X" }

// Details are what more is known of a process of this user; of others nothing is.
type Details struct {
	Gang  string // RUN/ATTEMPT, as its mark says; empty for a process without one
	Moved bool   // it is in another control group than the agent which marked it
	Agent bool   // it is an agent, or one of its watchdogs
}

// of reports whether a gang is an attempt of a run.
func (d Details) of(run string) bool {
	of, _, _ := strings.Cut(d.Gang, "/")
	return d.Gang != "" && of == run
}

// Table is the processes of this machine, by PID, as they were at about one time.
type Table map[int]Process

// ancestors returns a process and all above it, as far as they are known.
func (t Table) ancestors(pid int) (pids []int) {
	for p, ok := t[pid]; ok && !slices.Contains(pids, p.PID); p, ok = t[p.Parent] {
		pids = append(pids, p.PID)
	}
	return pids
}

// family is the children of each process.
type family map[int][]Process

func (t Table) family() family {
	below := family{}
	for _, p := range t {
		below[p.Parent] = append(below[p.Parent], p)
	}
	return below
}

// Find returns the leftovers, as the process self may judge them: neither it nor anything
// above or below it is one.
func (t Table) Find(self int, run string, look func(pid int) Details) (found []Process) {
	own, below := t.ancestors(self), t.family()
	for _, a := range t.adopters(self, own, look) {
		for _, p := range below[a.pid] {
			if slices.Contains(own, p.PID) {
				continue
			}
			if d := look(p.PID); d.Gang != "" && !d.Moved && !d.Agent && (!a.agent || d.of(run)) {
				found = append(found, below.tree(p, d.Gang, look)...)
			}
		}
	}
	return found
}

// adopter is a process to which the kernel gives orphans. Where it is an agent, it looks
// after what it is given itself, except that self, below it, knows better of its own run.
type adopter struct {
	pid   int
	agent bool
}

// adopters returns process 1, every systemd, and of what stands above self, own, the
// daemon of Slurm's step and agents. Nothing in /proc tells which others are subreapers:
// a shell, say, has only children of its own, which may have a mark from the user.
func (t Table) adopters(self int, own []int, look func(pid int) Details) (all []adopter) {
	all = []adopter{{pid: 1}} // which may be hidden, see hidepid in proc(5)
	for _, p := range t {
		switch {
		case p.PID == 1 || p.PID == self:
		case p.Name == "systemd":
			all = append(all, adopter{pid: p.PID})
		case !slices.Contains(own, p.PID):
		case p.Name == "slurmstepd":
			all = append(all, adopter{pid: p.PID})
		case look(p.PID).Agent:
			all = append(all, adopter{p.PID, true})
		}
	}
	return all
}

// tree returns a process of a gang and all below it, but for what agents look after.
func (f family) tree(top Process, gang string, look func(pid int) Details) (found []Process) {
	for queue := []Process{top}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		if p.PID != top.PID && look(p.PID).Agent {
			continue
		}
		if p.Gang = gang; !p.ended() {
			found = append(found, p)
		}
		queue = append(queue, f[p.PID]...)
	}
	return found
}

// Alive returns the processes of earlier attempts of a run, gang being the one to come,
// that stand below an agent which does not stand above self: it is about to end them.
func (t Table) Alive(self int, gang string, look func(pid int) Details) (found []Process) {
	own := t.ancestors(self)
	run, _, _ := strings.Cut(gang, "/")
	for _, p := range t {
		d := look(p.PID)
		if p.ended() || !d.of(run) || d.Gang == gang {
			continue
		}
		other := func(pid int) bool { return !slices.Contains(own, pid) && look(pid).Agent }
		if slices.ContainsFunc(t.ancestors(p.PID), other) {
			p.Gang = d.Gang
			found = append(found, p)
		}
	}
	return found
}
