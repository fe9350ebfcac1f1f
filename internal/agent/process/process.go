// Package process starts, finds, signals and reaps the descendants of the agent in which it runs. It also runs
// helper programs. It knows nothing about gangs.
package process

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/procfs"
)

// Process is one entry of /proc. PID and Start together identify a process.
type Process struct {
	PID, Parent int
	Start       uint64 // clock ticks after boot
	Zombie      bool
}

// Read returns the process whose PID is pid. ok is false if there is no such process.
func Read(pid int) (p Process, ok bool) {
	s, err := procfs.ReadStat(pid)
	return of(s), err == nil
}

func of(s procfs.Stat) Process { return Process{s.PID, s.Parent, s.Start, s.Ended()} }

// Descendants returns every live descendant of the process root, children before grandchildren. It can miss a
// process that is forked meanwhile, so a caller that ends the processes must repeat it until no process is
// left.
func Descendants(root int) []Process {
	below := map[int][]Process{}
	for _, pid := range procfs.PIDs() {
		if p, ok := Read(pid); ok {
			below[p.Parent] = append(below[p.Parent], p)
		}
	}
	var found []Process
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range below[queue[0]] {
			queue = append(queue, p.PID)
			if !p.Zombie {
				found = append(found, p)
			}
		}
	}
	return found
}

// Signal sends a signal to exactly this process. It never signals a later process with the same PID, because it
// opens a pidfd and compares the start time first.
func (p Process) Signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return // the process is gone
	}
	defer unix.Close(fd)
	if now, ok := Read(p.PID); ok && now.Start == p.Start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // the process may end meanwhile
	}
}

// maxListed limits the number of processes for which ListedDescendants reads the children.
const maxListed = 64

// ListedDescendants returns the PIDs of the descendants of the process pid. It is faster than Descendants,
// because it uses the kernel's lists of children. It returns no PIDs if the kernel is built without these lists
// (CONFIG_PROC_CHILDREN).
func ListedDescendants(pid int) []int {
	pids := []int{pid}
	for i := 0; i < len(pids) && len(pids) <= maxListed; i++ {
		pids = append(pids, procfs.Children(pids[i])...)
	}
	return pids[1:]
}

// IsDescendant reports whether the process pid descends from this process.
func IsDescendant(pid int) bool {
	for range 64 {
		p, ok := Read(pid)
		if !ok || p.Parent <= 1 {
			return false
		}
		if p.Parent == os.Getpid() {
			return true
		}
		pid = p.Parent
	}
	return false
}

// Handles reports whether the process pid has a handler for the signal sig. The process may already have ended
// when Handles returns.
func Handles(pid int, sig unix.Signal) bool {
	data, err := os.ReadFile(procfs.Path(pid, "status"))
	if err != nil {
		return false
	}
	field, _ := procfs.Field(data, "SigCgt")
	caught, err := strconv.ParseUint(field, 16, 64)
	return err == nil && caught&(1<<(sig-1)) != 0
}
