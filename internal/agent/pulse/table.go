// Package pulse takes the pulses of ranks: it reads from /proc what the processes of the ranks are doing, and
// how much they have done.
package pulse

import (
	"os"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/procfs"
)

// Table has processes of this host in the state in which they were at one moment.
type Table struct {
	stats    map[int]procfs.Stat
	children map[int][]int
}

// Look reads the processes with the PIDs in roots and all their descendants. If the kernel does not list the
// children of a process, Look reads all processes of the host.
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

// maxWrappers limits how many wrappers there may be between the process that was started as a rank and the rank's
// program.
const maxWrappers = 8

// Working returns the process that does the work of a rank. pid is the process that was started as the rank. If
// that process is a shell or another wrapper that waits for a single child, and the child has not ended, the
// child does the work. If a shell waits for the programs of a pipeline, the program that has used the most CPU
// time does the work. ok is false if the process pid does not exist.
func (t Table) Working(pid int) (s procfs.Stat, ok bool) {
	s, ok = t.stats[pid]
	for range maxWrappers {
		var next procfs.Stat
		living := 0
		for _, child := range t.children[s.PID] {
			if c, ok := t.stats[child]; ok && !c.Ended() {
				if living++; living == 1 || c.Spent() > next.Spent() {
					next = c
				}
			}
		}
		if living == 0 || s.State != 'S' || s.Threads > 1 || !waits(s, living) {
			break
		}
		s = next
	}
	return s, ok
}

// waits reports whether a process that sleeps waits for the end of its children. A process that has started a helper,
// and works itself, does not wait for it.
func waits(s procfs.Stat, children int) bool {
	if procfs.IsWrapper(s.Name) {
		return true
	}
	where, err := os.ReadFile(procfs.Path(s.PID, "wchan"))
	if place := strings.TrimSpace(string(where)); err == nil && place != "" && place != "0" {
		return children == 1 && place == "do_wait"
	}
	return children == 1 // the kernel does not say
}

// Tree returns the process with that PID and all its descendants, parents before their children. It returns
// nil if there is no such process.
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
