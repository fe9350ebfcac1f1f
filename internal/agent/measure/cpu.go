package measure

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/affinity"
	"github.com/gangrun/gangrun/internal/job"
)

const (
	mostCores  = 8                     // limits how many cores are measured
	coreTime   = 40 * time.Millisecond // for each core
	loopTurns  = 200_000               // about 1 ms
	mostNodes  = 8                     // limits how many NUMA nodes are measured
	nodeTime   = 150 * time.Millisecond
	copySize   = 64 << 20 // in bytes; more than the caches of most CPUs have
	memoryPart = 4        // a copy may take 1/memoryPart of the memory that a measurement may take
)

// cpus measures up to mostCores of the cores that this process may use. They are evenly spread over all of
// them.
func cpus(ctx context.Context) (speeds []job.Speed) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil
	}
	var cores []int
	for cpu := range len(allowed) * 64 {
		if allowed.IsSet(cpu) {
			cores = append(cores, cpu)
		}
	}
	n := min(len(cores), mostCores)
	for i := range n {
		cpu := cores[i*len(cores)/n]
		if ctx.Err() != nil {
			break
		}
		bound(strconv.Itoa(cpu), func() {
			speeds = append(speeds, job.Speed{Of: fmt.Sprintf("core %d", cpu), Value: best(ctx, coreTime, func() float64 {
				return rate(loopTurns, func() { loop(loopTurns) })
			})})
		})
	}
	return speeds
}

// bound calls f on a thread that is bound to a list of CPUs, and waits for f. The thread ends with f, so that
// no other goroutine runs on it.
func bound(cpus string, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		affinity.Bound(cpus, f)
	}()
	<-done
}

// rate returns how many units f does in one second of this thread's CPU time. Other programs on the same core
// do not change that time. The goroutine must be locked to its thread.
func rate(units float64, f func()) float64 {
	begun := cpuTime()
	f()
	if took := cpuTime() - begun; took > 0 {
		return units / took.Seconds()
	}
	return 0
}

func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// sink has the results of loops, so that the compiler does not remove the loops.
var sink float64

// loop computes with integers and floating point numbers.
//
//go:noinline
func loop(turns int) {
	i, x := uint64(turns), 1.0
	for range turns {
		i = i*6364136223846793005 + 1442695040888963407
		x = x*0.999 + float64(i>>60)
	}
	sink = x
}

// memory measures how fast one core of each NUMA node copies memory of that node.
func memory(ctx context.Context, most int64) (speeds []job.Speed) {
	for _, n := range nodes(root) {
		if len(speeds) == mostNodes || ctx.Err() != nil {
			break
		}
		bound(n.cpus, func() {
			size := int(min(copySize, most/memoryPart))
			// The kernel takes the memory from the node on which this thread runs.
			data, err := unix.Mmap(-1, 0, 2*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
			if err != nil {
				speeds = append(speeds, job.Speed{Of: n.name, Error: err.Error()})
				return
			}
			defer func() { _ = unix.Munmap(data) }()
			speeds = append(speeds, job.Speed{Of: n.name, Value: best(ctx, nodeTime, func() float64 {
				return rate(float64(size), func() { copy(data[size:], data[:size]) })
			})})
		})
	}
	return speeds
}

// node is a NUMA node.
type node struct{ name, cpus string }

// nodes returns the NUMA nodes that have CPUs. If the kernel knows no NUMA nodes, it returns one node without
// a list of CPUs.
func nodes(fsys fs.FS) (list []node) {
	paths, _ := fs.Glob(fsys, "sys/devices/system/node/node[0-9]*") // the error is about the pattern, which is valid
	for _, path := range paths {
		data, err := fs.ReadFile(fsys, path+"/cpulist")
		if cpus := strings.TrimSpace(string(data)); err == nil && cpus != "" {
			list = append(list, node{"NUMA node " + path[strings.LastIndex(path, "node")+4:], cpus})
		}
	}
	if len(list) == 0 {
		list = []node{{"memory", ""}}
	}
	return list
}
