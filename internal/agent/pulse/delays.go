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

// maxThreads is how many threads of a rank's working process are looked at. Those of libraries that
// only wait come later.
const maxThreads = 16

// delays remembers what is needed to tell what holds up a rank.
type delays struct {
	own       string // /proc/PID/cgroup, to which limits belongs
	limits    []cgroup.CPU
	throttled []time.Duration // by limits at the last look
	total     time.Duration   // over all control groups in which the rank has been
}

// scheduled returns how long threads of a rank have run, and waited for a CPU.
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
			add(procfs.Path(s.PID, "schedstat")) // of its main thread
			continue
		}
		for _, thread := range threads(s.PID) {
			add(procfs.Path(s.PID, "task/"+thread+"/schedstat"))
		}
	}
	return ran, waited
}

// threads returns the first threads of a process.
func threads(pid int) []string {
	dir, err := os.Open(procfs.Path(pid, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxThreads) // what was read before an error counts
	return names
}

// held returns how long limits of the control groups of a process have held it up.
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
	var longest time.Duration // limits may hold it up at the same time
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

// cores returns how many CPUs a process may use; 0 if that is not known.
func cores(pid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return 0
	}
	return set.Count()
}

// waitsForFile reports whether a process waits for a file system or a disk. Who waits for one in user
// space (FUSE) is not in an uninterruptible sleep.
func waitsForFile(s procfs.Stat) bool {
	if s.State != 'S' {
		return s.State == 'D'
	}
	where, err := os.ReadFile(procfs.Path(s.PID, "wchan"))
	return err == nil && (string(where) == "request_wait_answer" || strings.HasPrefix(string(where), "fuse_"))
}

// MemoryStall returns how long the processes of this host have waited for memory; 0 if the kernel does
// not tell.
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
