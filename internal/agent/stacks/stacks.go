// Package stacks finds out where the ranks on this host are: the stacks of the threads of all of
// their processes. It never stops a rank for longer than a tool needs to read its stack, and never
// waits for a process or a file system that hangs.
package stacks

import (
	"context"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Limits of one collection.
const (
	// toolsUntil is the time after which tools are ended. What is known by then is returned.
	toolsUntil = 9 * time.Second
	// procLimit bounds the reading of /proc for one rank. It takes milliseconds.
	procLimit    = time.Second
	maxProcesses = 8  // of a rank; the process that does the work comes first
	maxThreads   = 64 // of a rank, over all processes
	maxFrames    = 100
	atOnce       = 4 // tools, which each use up to one core
)

// Target is a rank whose stacks are wanted.
type Target struct {
	Rank int
	PID  int // the process that was started as the rank
	// Faults is the file that the rank has in its environment variable faulthandler.Env, or "".
	Faults string
	Flight Flight
}

// Runner runs a helper program to its end and returns what it has printed. It returns soon after ctx
// has ended, even if the program hangs in the kernel.
type Runner interface {
	RunHelper(ctx context.Context, path string, argv []string, dir string, env []string, stdin []byte, both bool) ([]byte, error)
}

// Collector collects the stacks of ranks on this host. Close must be called in the end.
type Collector struct {
	Host string
	// Env is the environment of the tools. They are looked for in its PATH, and then where
	// distributions install programs.
	Env []string
	Run Runner

	readers readers
	dumps   readers    // of dumps of flight recorders
	parsing sync.Mutex // so that only one dump is in memory
}

// Close waits for readings that a process in the kernel holds up, at most until ctx ends.
func (c *Collector) Close(ctx context.Context) {
	c.readers.wait(ctx)
	c.dumps.wait(ctx)
}

// Collect returns the stacks of the targets, and what their flight recorders have written down, in their
// order. It takes at most ten seconds, and less if ctx ends before. Then it returns what it has.
func (c *Collector) Collect(ctx context.Context, targets []Target) []job.RankStack {
	ctx, cancel := context.WithTimeout(ctx, toolsUntil)
	defer cancel()
	records := make([]*job.FlightRecord, len(targets))
	var recorders sync.WaitGroup
	for i, t := range targets {
		recorders.Go(func() { records[i] = c.record(ctx, t) })
	}
	ranks := make([]*rank, len(targets))
	c.each(len(targets), 2*atOnce, func(i int) { ranks[i] = c.look(ctx, targets[i]) })
	found := c.findTools(ctx)
	// The process that does the work of each rank first, then the others, as time permits.
	for n := range maxProcesses {
		c.each(len(ranks), atOnce, func(i int) {
			if n < len(ranks[i].processes) && ctx.Err() == nil {
				c.inspect(ctx, ranks[i], &ranks[i].processes[n], found)
			}
		})
	}
	recorders.Wait()
	all := make([]job.RankStack, len(ranks))
	for i, r := range ranks {
		all[i] = r.stack(c.Host)
		all[i].Record = records[i]
	}
	return all
}

// each calls f for 0 to n-1, some at once, and waits for all.
func (c *Collector) each(n, atOnce int, f func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}

// rank is what has been found of one target.
type rank struct {
	target    Target
	processes []proc // the one that does the work comes first
	why       string // why there are none, or not all that there is to know of them
}

// look reads what /proc has of a rank.
func (c *Collector) look(ctx context.Context, t Target) *rank {
	ctx, cancel := context.WithTimeout(ctx, procLimit)
	defer cancel()
	processes, ok := limited(ctx, &c.readers, t.PID, func() []proc { return readTree(t.PID, true) })
	r := &rank{target: t, processes: processes}
	switch {
	case !ok:
		r.why = "the kernel does not say in which system calls its threads are, as it waits for one of its processes"
		r.processes = readTree(t.PID, false)
	case len(processes) == 0:
		r.why = "it has ended"
	}
	return r
}

// stack returns what was found.
func (r *rank) stack(host string) job.RankStack {
	s := job.RankStack{Rank: r.target.Rank, Host: host, Error: r.why, Threads: []job.ThreadStack{}}
	for i := range r.processes {
		p := &r.processes[i]
		if i == 0 {
			s.Tool, s.Python = p.tool, p.python
			if s.Error == "" {
				s.Error = p.why
			}
		}
		s.Threads = append(s.Threads, p.threads...)
	}
	return s
}
