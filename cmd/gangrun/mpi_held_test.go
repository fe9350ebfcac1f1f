package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// held is what a process has that it could leak.
type held struct {
	Goroutines int
	Stacks     string // of the goroutines, for the messages of tests
	Heap       int64  // bytes in use
	Resident   int64  // bytes that the kernel counts, after unused memory was given back

	descriptors map[string]int // number of descriptors by the kind of file
}

// sum returns the number of descriptors.
func sum(descriptors map[string]int) (n int) {
	for _, some := range descriptors {
		n += some
	}
	return n
}

// holding returns what this process has, without its descriptors.
func holding() (h held) {
	runtime.GC() // the second collection frees what pools have kept
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	h = held{Goroutines: runtime.NumGoroutine(), Stacks: stacks.String(), Heap: int64(memory.HeapAlloc)}
	h.Resident = resident(os.Getpid())
	return h
}

// resident returns the resident memory of a process in bytes.
func resident(pid int) int64 {
	sizes, _ := os.ReadFile(proc(pid, "statm"))
	fields := strings.Fields(string(sizes))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// tell writes what this process has to a file that is named after its PID.
func tell(dir string) error {
	data, err := json.Marshal(holding())
	if err != nil {
		return err
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid()))
	return errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}

// census returns what each of the processes has.
func (l *longLived) census(pids map[string]int) map[string]held {
	l.t.Helper()
	all := map[string]held{}
	for name, pid := range pids {
		descriptors := l.descriptors(name, pid)
		h := holding()
		switch {
		case strings.Contains(name, "watchdog"): // a watchdog cannot be asked
			h = held{Resident: resident(pid)}
		case pid != os.Getpid():
			h = l.hear(name, pid)
		}
		h.descriptors = descriptors
		all[name] = h
	}
	return all
}

// descriptors returns how many descriptors of each kind a process has.
func (l *longLived) descriptors(name string, pid int) map[string]int {
	l.t.Helper()
	links, err := filepath.Glob(proc(pid, "fd/*"))
	if err != nil || len(links) == 0 {
		l.t.Fatalf("the %s has no descriptors: %v", name, err)
	}
	found := map[string]int{}
	for _, link := range links {
		// The descriptor with which this process reads the directory is closed by now.
		if target, err := os.Readlink(link); err == nil {
			what, _, _ := strings.Cut(target, ":[") // cuts off the numbers of pipes and sockets
			found[what]++
		}
	}
	return found
}

// hear asks an agent what it has.
func (l *longLived) hear(name string, pid int) (h held) {
	l.t.Helper()
	path := filepath.Join(l.tell, strconv.Itoa(pid))
	if err := unix.Kill(pid, unix.SIGUSR2); err != nil {
		l.t.Fatalf("ask the %s: %v", name, err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		data, err := os.ReadFile(path)
		if err == nil {
			decode(l.t, data, &h)
			if err := os.Remove(path); err != nil {
				l.t.Fatal(err)
			}
			return h
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("the %s does not tell what it holds: %v", name, err)
		}
	}
}

// rest returns a census when it no longer changes. A process may free what a gang has needed a moment after the end of
// the gang.
func (l *longLived) rest(pids map[string]int) map[string]held {
	l.t.Helper()
	same := func(a, b held) bool {
		return a.Goroutines == b.Goroutines && maps.Equal(a.descriptors, b.descriptors)
	}
	now := l.census(pids)
	for deadline, calm := time.Now().Add(patience), 0; calm < 3; calm++ {
		before := now
		if now = l.census(pids); !maps.EqualFunc(before, now, same) {
			calm = 0
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("the agents have not come to rest within %s", patience)
		}
	}
	return now
}

// restAs waits until the processes have no more than before the gangs, and returns a census. If they still have more
// after exitLimit, it returns what they have then. It counts the descriptors before it takes a census, because the
// garbage collection of a census also closes files that were forgotten.
func (l *longLived) restAs(before map[string]held, pids map[string]int, gangs int) map[string]held {
	l.t.Helper()
	open := map[string]map[string]int{}
	l.least(func() (more bool) {
		for name, b := range before {
			open[name] = l.descriptors(name, pids[name])
			more = more || sum(open[name]) > sum(b.descriptors)
		}
		return more
	})
	var now map[string]held
	l.least(func() (more bool) {
		now = l.rest(pids)
		for name, b := range before {
			heap, resident := now[name].more(b, gangs)
			more = more || now[name].Goroutines > b.Goroutines || heap || resident
		}
		return more
	})
	for name, h := range now {
		h.descriptors = open[name]
		now[name] = h
	}
	return now
}

// least waits until more returns false, at most for exitLimit.
func (l *longLived) least(more func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(exitLimit); more() && time.Now().Before(deadline); {
		<-tick.C
	}
}

// After a number of gangs, a process may have somewhat more memory than before. For each gang, it may have fewer
// additional bytes of heap than the smallest thing that it could keep of a gang: even the environment is larger.
// Beyond that, it may once have the amount by which both numbers vary: the runtime's own tables grow, and memory is
// given back in whole pages.
const (
	heapEach, heapOnce         = 1 << 10, 64 << 10
	residentEach, residentOnce = 4 << 10, 8 << 20
)

// more reports whether a process has leaked heap or resident memory since before.
func (h held) more(before held, gangs int) (heap, resident bool) {
	return h.Heap-before.Heap > int64(heapOnce+gangs*heapEach), h.Resident-before.Resident > int64(residentOnce+gangs*residentEach)
}

// grown returns the names of the processes that have more memory than before these gangs, beyond what the gangs may
// add. It fails the test if a process has more descriptors or goroutines than before.
func (l *longLived) grown(gangs int, before, now map[string]held) (names []string) {
	for name, b := range before {
		n := now[name]
		l.t.Logf("%s: %d descriptors, %d goroutines, heap %d KiB (%+d), resident %d KiB (%+d)", name, sum(n.descriptors), n.Goroutines,
			n.Heap>>10, (n.Heap-b.Heap)>>10, n.Resident>>10, (n.Resident-b.Resident)>>10)
		if sum(n.descriptors) > sum(b.descriptors) {
			l.t.Errorf("the %s has leaked descriptors: %v after %d more gangs, %v before", name, n.descriptors, gangs, b.descriptors)
		}
		if n.Goroutines > b.Goroutines {
			l.t.Errorf("the %s has leaked goroutines: %d after %d more gangs, %d before:\n%s", name, n.Goroutines, gangs, b.Goroutines, n.Stacks)
		}
		if heap, resident := n.more(b, gangs); heap || resident {
			names = append(names, name)
		}
	}
	return names
}
