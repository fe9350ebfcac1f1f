package pulse

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// maxThreads limits how many threads of a rank's working process are read. Usually, the first threads of a process
// work. The threads of libraries, which only wait, are started later.
const maxThreads = 16

// delays is what a Sampler remembers of the delays of a rank between two rounds.
type delays struct {
	own       string // the text of /proc/PID/cgroup from which limits was made
	limits    []cgroup.CPU
	throttled []time.Duration // the throttled time of each of limits at the last round
	total     time.Duration   // the throttled time of the rank in all control groups so far
}

// scheduled returns for how long threads of a rank have run and for how long they have waited for a CPU, in
// nanoseconds. It adds up the threads of the process worker and the main threads of all other processes in
// tree.
func scheduled(tree []procfs.Stat, worker int) (ran, waited int64) {
	add := func(path string) {
		data, err := os.ReadFile(path)
		fields := bytes.Fields(data)
		if err != nil || len(fields) < 2 {
			return
		}
		a, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		b, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		ran, waited = ran+a, waited+b
	}
	for _, s := range tree {
		if s.PID != worker || s.Threads <= 1 {
			add(procfs.Path(s.PID, "schedstat")) // the schedstat of the main thread
			continue
		}
		for _, thread := range threads(s.PID) {
			add(procfs.Path(s.PID, "task/"+thread+"/schedstat"))
		}
	}
	return ran, waited
}

// threads returns the IDs of the first maxThreads threads of a process.
func threads(pid int) []string {
	dir, err := os.Open(procfs.Path(pid, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxThreads) // the names that were read before an error are enough
	return names
}

// held returns for how long the CPU limits of its control groups have throttled a process.
func (d *delays) held(pid int, mounts func() string) time.Duration {
	data, err := os.ReadFile(procfs.Path(pid, "cgroup"))
	if err != nil {
		return d.total
	}
	fresh := string(data) != d.own
	if fresh {
		d.own, d.limits = string(data), cgroup.CPUOf(string(data), mounts())
		d.throttled = make([]time.Duration, len(d.limits))
	}
	var longest time.Duration // several limits may throttle the process at the same time
	for i, limit := range d.limits {
		if t, ok := limit.Throttled(); ok {
			longest = max(longest, t-d.throttled[i])
			d.throttled[i] = t
		}
	}
	if !fresh {
		d.total += longest
	}
	return d.total
}

// cores returns the number of CPUs that a process may use. It returns 0 if the number is not known.
func cores(pid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return 0
	}
	return set.Count()
}

// waitsForFile reports whether a process waits for a file system or a disk. A process that waits for a FUSE
// file system is in an interruptible sleep; the kernel function in which it waits identifies it.
func waitsForFile(s procfs.Stat) bool {
	if s.State != 'S' {
		return s.State == 'D'
	}
	where, err := os.ReadFile(procfs.Path(s.PID, "wchan"))
	return err == nil && (string(where) == "request_wait_answer" || strings.HasPrefix(string(where), "fuse_"))
}

// MemoryStall returns the total time since boot in which every process of this host that had work to do was
// waiting for memory. It returns 0 if the kernel does not report that.
func MemoryStall() job.Duration {
	data, err := os.ReadFile("/proc/pressure/memory")
	if err != nil {
		return 0
	}
	_, full, _ := strings.Cut(string(data), "full ")
	_, total, _ := strings.Cut(full, "total=")
	microseconds, _ := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
	return job.Duration(microseconds) * job.Duration(time.Microsecond)
}
