// Package health finds signs that something is wrong with a host, or soon will be: its memory or a file system
// runs out, or the kernel reports broken hardware. Watch takes samples of the host, and a Judge finds the signs
// in the samples.
package health

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Sample is the state of a host at one moment.
type Sample struct {
	Memory []Memory
	Disks  []Disk
	Kills  []Kills
	Kernel []string    // the lines that were added to the kernel's log since the last sample
	Ranks  map[int]int // maps the PID of each process to its rank
}

// Memory is the memory of the host, or of a control group that has a limit.
type Memory struct {
	Group string // the directory of the group; empty for the host
	Ranks []int  // the ranks in the group; nil for the host
	Limit int64  // bytes
	Used  int64  // in bytes, without the page cache
}

// Kills is how many processes of a control group the kernel has killed because the group had no memory left.
type Kills struct {
	Group string // the directory of the group
	Ranks []int  // the ranks in the group
	Count int64  // number of kills since the group was made
}

// Use is what a gang uses a file system for.
type Use string

// The uses of file systems.
const (
	UseCheckpoints Use = "checkpoints"
	UseLogs        Use = "logs"
	UseShared      Use = "shm"
	UseTemporary   Use = "tmp"
)

// words has the texts for the uses.
var words = map[Use]string{
	UseCheckpoints: "the checkpoint directory",
	UseLogs:        "the directory of the logs",
	UseShared:      "shared memory",
	UseTemporary:   "temporary files",
}

// Disk is the state of a file system.
type Disk struct {
	Path       string
	Use        Use
	Size, Free int64 // in bytes; users other than root can still write Free bytes
	// Inodes is the number of files that the file system can hold; 0 if that is not known. FreeInodes is how
	// many further files can be made.
	Inodes, FreeInodes int64
	// Stuck is how long the file system has not answered. If it is not 0, the other numbers are unknown.
	Stuck time.Duration
}

// Sign is a sign that something is wrong with a host, with a text for the user.
type Sign struct {
	job.Health
	Text string // a sentence that does not name the host
	Hint string
}

// Judge finds signs in the samples of one host. It does not read the clock.
type Judge struct {
	memory map[string]*memoryState
	disks  map[string]*diskState
	kills  map[string]*int64 // the last count of each group
	kernel map[string]*kernelCount
}

// NewJudge returns a Judge that has seen no sample.
func NewJudge() *Judge {
	return &Judge{memory: map[string]*memoryState{}, disks: map[string]*diskState{}, kills: map[string]*int64{}, kernel: map[string]*kernelCount{}}
}

// Judge judges a sample that was taken at now. It returns the signs that are new, and the signs that have
// become worse.
func (j *Judge) Judge(now time.Time, s Sample) (signs []Sign) {
	for _, m := range s.Memory {
		if state := stateOf(j.memory, m.Group); state != nil {
			signs = append(signs, state.judge(now, m)...)
		}
	}
	for _, d := range s.Disks {
		if state := stateOf(j.disks, d.Path); state != nil {
			signs = append(signs, state.judge(now, d)...)
		}
	}
	for _, k := range s.Kills {
		signs = append(signs, j.killed(k)...)
	}
	for _, line := range s.Kernel {
		signs = append(signs, j.line(line, s.Ranks)...)
	}
	return signs
}

// maxStates limits the number of groups, and the number of file systems, that a Judge remembers.
const maxStates = 256

// stateOf returns the state of a group or file system, or nil if there are too many.
func stateOf[T any](states map[string]*T, key string) *T {
	if state := states[key]; state != nil || len(states) == maxStates {
		return state
	}
	states[key] = new(T)
	return states[key]
}

// worse decides whether a sign is reported again.
type worse struct {
	told  int
	least time.Duration // the time left at the last report
	since time.Time     // the last time at which the resource was short
}

const (
	maxTold = 8                // limits the reports of one sign of one resource
	healed  = 10 * time.Minute // if the resource was not short for so long, the next shortage is a new one
)

// again reports whether a shortage must be reported. left is the time until the resource is used up. A shortage is
// reported if it is new, or if left is less than a third of what it was at the last report.
func (w *worse) again(now time.Time, left time.Duration) bool {
	first := w.told == 0 || now.Sub(w.since) > healed
	w.since = now
	if w.told == maxTold || !first && left >= w.least/3 {
		return false
	}
	w.told++
	w.least = left
	return true
}

// size writes a number of bytes, as in "16 GiB" or "1.5 TiB".
func size(bytes int64) string {
	value, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	unit := 0
	for ; value >= 1024 && unit < len(units)-1; unit++ {
		value /= 1024
	}
	if value < 10 && unit > 0 {
		return fmt.Sprintf("%.1f %s", value, units[unit])
	}
	return fmt.Sprintf("%.0f %s", value, units[unit])
}

// about writes how much time is left, as in "about 4 min".
func about(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "a few seconds"
	case d < 100*time.Second:
		return fmt.Sprintf("about %d s", int(d.Round(10*time.Second).Seconds()))
	}
	return fmt.Sprintf("about %d min", int(d.Round(time.Minute).Minutes()))
}
