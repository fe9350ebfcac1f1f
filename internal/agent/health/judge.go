// Package health finds out that a host is ill, or soon will be: its memory or a file system runs
// out, or the kernel reports broken hardware. A Judge decides from samples alone; a Sampler takes
// them.
package health

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Sample is what was seen of a host at one moment.
type Sample struct {
	Memory []Memory
	Disks  []Disk
	Kills  []Kills
	Kernel []string    // new lines of the kernel's log
	Ranks  map[int]int // ranks by the PIDs of their processes
}

// Memory is the memory of the host, or of a control group that has a limit.
type Memory struct {
	Group string // the directory of the group; empty for the host
	Ranks []int  // those in the group; nil for the host
	Limit int64  // bytes
	Used  int64  // bytes, without the page cache
}

// Kills is the kernel's count of processes that it has killed in a control group for want of
// memory.
type Kills struct {
	Group string // the directory of the group
	Ranks []int  // those in it
	Count int64  // since the group was made
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

// words are the uses in words.
var words = map[Use]string{
	UseCheckpoints: "the checkpoint directory",
	UseLogs:        "the directory of the logs",
	UseShared:      "shared memory",
	UseTemporary:   "temporary files",
}

// Disk is a file system.
type Disk struct {
	Path       string
	Use        Use
	Size, Free int64 // bytes; Free is what a user other than root may still take
	// Inodes is how many files there can be; 0 if that is not known. FreeInodes is how many more.
	Inodes, FreeInodes int64
	// Stuck is for how long the file system has not answered. The other fields are then unknown.
	Stuck time.Duration
}

// Sign is a sign of ill health, in words.
type Sign struct {
	job.Health
	Text string // without the host
	Hint string
}

// Judge finds signs of ill health in the samples of one host. It has no clock.
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

// Judge takes the next sample, of the time now, and returns the signs that it shows for the first
// time, or that have become worse.
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

// maxStates bounds the groups, and the file systems, that are followed.
const maxStates = 256

// stateOf returns the state of a group or file system, or nil if there are too many.
func stateOf[T any](states map[string]*T, key string) *T {
	if state := states[key]; state != nil || len(states) == maxStates {
		return state
	}
	states[key] = new(T)
	return states[key]
}

// worse decides whether a sign is told again.
type worse struct {
	told  int
	least time.Duration // the time left when it was last told
	since time.Time     // when the resource was last short
}

const (
	maxTold = 8                // how often one sign of one resource is told
	healed  = 10 * time.Minute // without a shortage: a later one is a new one
)

// again reports whether a shortage with so much time left is told: the first one, one with less
// than a third of the time left that was told before, and one that comes after a good time.
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

// size writes bytes as in "16 GiB" or "1.5 TiB".
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

// about writes a time left, as in "about 4 min".
func about(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "a few seconds"
	case d < 100*time.Second:
		return fmt.Sprintf("about %d s", int(d.Round(10*time.Second).Seconds()))
	}
	return fmt.Sprintf("about %d min", int(d.Round(time.Minute).Minutes()))
}
