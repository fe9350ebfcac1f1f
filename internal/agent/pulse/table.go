// Package pulse takes the pulse of ranks: what their processes are doing, and how much they have
// done.
package pulse

import "github.com/gangrun/gangrun/internal/procfs"

// Table is the processes of this host at one moment.
type Table struct {
	stats    map[int]procfs.Stat
	children map[int][]int
}

// Look reads the processes that /proc lists.
func Look() Table { return lookAt(procfs.PIDs()) }

// lookAt reads those processes that still exist.
func lookAt(pids []int) Table {
	t := Table{stats: map[int]procfs.Stat{}, children: map[int][]int{}}
	for _, pid := range pids {
		if s, err := procfs.ReadStat(pid); err == nil {
			t.stats[pid] = s
			t.children[s.Parent] = append(t.children[s.Parent], pid)
		}
	}
	return t
}

// maxWrappers is how many wrappers, one below the other, may stand between a rank's process and
// its program.
const maxWrappers = 8

// Working returns the process that does the work of a rank with that process, and its stat. A
// shell or another wrapper that waits for a single child does not work; the child does, unless it has
// ended. ok is
// false if there is no such process.
func (t Table) Working(pid int) (s procfs.Stat, ok bool) {
	s, ok = t.stats[pid]
	for range maxWrappers {
		children := t.children[s.PID]
		if !ok || s.State != 'S' || len(children) != 1 || t.stats[children[0]].Ended() {
			break
		}
		s = t.stats[children[0]]
	}
	return s, ok
}

// Tree returns a process and everything below it, parents first; nil if there is no such process.
func (t Table) Tree(pid int) []procfs.Stat {
	root, ok := t.stats[pid]
	if !ok {
		return nil
	}
	all := []procfs.Stat{root}
	for i := 0; i < len(all); i++ {
		for _, child := range t.children[all[i].PID] {
			all = append(all, t.stats[child])
		}
	}
	return all
}
