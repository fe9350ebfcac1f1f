// Package affinity starts processes on some of a host's CPUs.
package affinity

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCPU is the number of CPUs in a unix.CPUSet.
const maxCPU = 1024

// Parse reads a list of CPUs in the kernel's form, as in 0-3,8.
func Parse(list string) (set unix.CPUSet, err error) {
	for part := range strings.SplitSeq(list, ",") {
		low, high, ranged := strings.Cut(part, "-")
		from, err := strconv.ParseUint(low, 10, 16)
		to := from
		if err == nil && ranged {
			to, err = strconv.ParseUint(high, 10, 16)
		}
		if err != nil || to < from || to >= maxCPU {
			return unix.CPUSet{}, fmt.Errorf("%q is no list of CPUs", list)
		}
		for cpu := from; cpu <= to; cpu++ {
			set.Set(int(cpu))
		}
	}
	return set, nil
}

// Bound binds the calling thread to a list of CPUs and calls f. The caller must have locked the
// goroutine to its thread. Processes that f starts inherit the binding. If the list is empty, or
// names no CPU that this thread may use, Bound calls f without binding the thread.
func Bound(list string, f func()) {
	if list != "" {
		var before unix.CPUSet
		set, err := Parse(list)
		if err == nil && unix.SchedGetaffinity(0, &before) == nil && unix.SchedSetaffinity(0, &set) == nil {
			defer func() { _ = unix.SchedSetaffinity(0, &before) }() // it was allowed before
		}
	}
	f()
}
