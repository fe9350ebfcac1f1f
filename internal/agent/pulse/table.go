// Package pulse takes the pulse of ranks: what their processes are doing, and how much they have
// done.
package pulse

import (
	"os"
	"slices"

	"github.com/gangrun/gangrun/internal/procfs"
)

// Table is the processes of this host at one moment.
type Table struct {
	stats    map[int]procfs.Stat
	children map[int][]int
}

// Look reads the processes with the PIDs roots and all that are below them. On a kernel that does not
// list the children of a process, it reads all processes of the host.
func Look(roots []int) Table {
	t := Table{stats: map[int]procfs.Stat{}, children: map[int][]int{}}
	if _, err := os.Stat("/proc/thread-self/children"); err != nil { // CONFIG_PROC_CHILDREN is off
		for _, pid := range procfs.PIDs() {
			if s, ok := t.read(pid); ok {
				t.children[s.Parent] = append(t.children[s.Parent], pid)
			}
		}
		return t
	}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		if s, ok := t.read(queue[0]); ok && !s.Ended() {
			children := procfs.Children(s.PID)
			t.children[s.PID] = children
			queue = append(queue, children...)
		}
	}
	return t
}

func (t Table) read(pid int) (s procfs.Stat, ok bool) {
	s, err := procfs.ReadStat(pid)
	if err != nil {
		return s, false
	}
	t.stats[pid] = s
	return s, true
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
		if s, ok = t.stats[children[0]]; !ok {
			return t.stats[pid], true
		}
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
			if s, ok := t.stats[child]; ok {
				all = append(all, s)
			}
		}
	}
	return all
}
