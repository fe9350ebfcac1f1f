// Package stacks finds out at which places in their programs the ranks on this host are. It reads the stacks of
// all threads of all their processes. It stops a process only while a tool reads the process's stacks. It never
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
	// toolsUntil is the time after which a collection ends the tools and returns what is known by then.
	toolsUntil = 9 * time.Second
	// procLimit limits the time for reading /proc for one rank. Usually, that takes milliseconds.
	procLimit    = time.Second
	maxProcesses = 8  // limit for the processes of a rank
	maxThreads   = 64 // limit for the threads of all processes of a rank
	maxFrames    = 100
	atOnce       = 4 // limits the tools that run at the same time; each uses up to one core
)

// Target is a rank whose stacks are wanted.
type Target struct {
	Rank int
	PID  int // the process that was started as the rank
	// Faults is the value of the rank's environment variable faulthandler.Env, or "".
	Faults string
	Flight Flight
}

// Runner runs a helper program to its end and returns what it has printed. It returns soon after ctx
// has ended, even if the program hangs in the kernel.
type Runner interface {
	RunHelper(ctx context.Context, path string, argv []string, dir string, env []string, stdin []byte, both bool) ([]byte, error)
}

// Collector collects the stacks of ranks on this host. The caller must call Close when it no longer needs the
// Collector.
type Collector struct {
	Host string
	// Env is the environment of the tools. The Collector looks for tools in the PATH of Env, and then in the
	// directories in which distributions install programs.
	Env []string
	Run Runner

	readers readers
	dumps   readers    // read dumps of flight recorders
	parsing sync.Mutex // allows only one dump in memory
}

// Close waits until no goroutine of the Collector still hangs in a read of /proc, or until ctx ends.
func (c *Collector) Close(ctx context.Context) {
	c.readers.wait(ctx)
	c.dumps.wait(ctx)
}

// Collect returns the stacks of the targets, in the order of targets. The stacks of a rank come with the record of its
// flight recorder, if it has one. After nine seconds, or when ctx ends, Collect returns what it has.
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
	// First inspect the process that does the work of each rank, and then the other processes as long as there is time.
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

// each calls f with 0 to n-1, up to atOnce calls at the same time, and waits for all calls.
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

// rank is what was found about one target.
type rank struct {
	target    Target
	processes []proc // the process that does the rank's work is the first
	why       string // why there are no processes, or why something about the processes is missing
}

// look reads what /proc says about a rank.
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

// stack returns the stacks of the rank.
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
