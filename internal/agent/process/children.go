package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/procfs"
)

// Children starts the child processes of this process, and reaps every child, including orphans, which become its
// children when their parents end. Nothing else in this process may call wait(2).
type Children struct {
	fork   chan func()   // functions for the forker to call
	done   chan struct{} // closed by Close
	wg     sync.WaitGroup
	ending atomic.Bool // nothing may be started any more

	killFirst atomic.Bool // see KillFirst

	// forking is held while a batch is forked. On a slow file system, that takes long. Only the reaper waits for
	// forking, because it must not reap a PID that is not in live yet.
	forking sync.Mutex

	mu     sync.Mutex     // never held across a system call that may block
	live   map[int]*Child // by PID, until the child is reaped
	none   bool           // the kernel reports that there is no child at all
	change chan struct{}  // closed and replaced when none changes
}

// Child is a process that was started or adopted.
type Child struct {
	PID    int
	Exited chan struct{} // closed once Status and When are set
	Status unix.WaitStatus
	When   time.Time
}

// Ended reports whether the process has ended and been waited for.
func (ch *Child) Ended() bool {
	select {
	case <-ch.Exited:
		return true
	default:
		return false
	}
}

// NewChildren makes this process a subreaper. It starts two goroutines, one that forks and one that reaps.
// Close ends these goroutines.
func NewChildren() (*Children, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	c := &Children{
		fork:   make(chan func()),
		done:   make(chan struct{}),
		live:   map[int]*Child{},
		none:   true,
		change: make(chan struct{}),
	}
	c.wg.Add(2)
	go c.forker()
	go c.reaper()
	return c, nil
}

// Starter forks and executes a program. attr.Sys must not be nil.
type Starter func(path string, argv []string, attr *syscall.ProcAttr) (*Child, error)

var errEnding = errors.New("the agent is ending")

// KillFirst protects this process if memory is short: the kernel then kills programs that are started after this
// call, before it kills this process. See proc_pid_oom_score_adj(5).
func (c *Children) KillFirst() { c.killFirst.Store(true) }

// Start starts one program.
func (c *Children) Start(path string, argv []string, attr *syscall.ProcAttr) (ch *Child, err error) {
	if !c.Batch(func(start Starter) { ch, err = start(path, argv, attr) }) {
		return nil, errEnding
	}
	return ch, err
}

// Batch runs f on the thread that forks, so that f can start several programs without a switch of threads for
// each program. Children reaps no process while f runs, because reaping would slow down the forks. Batch
// returns false if it has not run f because the agent is ending.
func (c *Children) Batch(f func(Starter)) bool {
	done := make(chan struct{})
	select {
	case c.fork <- func() {
		defer close(done)
		c.forking.Lock()
		defer c.forking.Unlock()
		c.mu.Lock()
		c.setNone(false) // a process that is being forked is in no list yet
		c.mu.Unlock()
		defer holdOffGC()()
		f(c.forkHere)
	}:
		<-done
		return true
	case <-c.done:
		return false
	}
}

// holdOffGC turns the garbage collector off and waits until it is idle. restore turns it on again. A collection stops
// all threads for a moment. The thread that calls syscall.ForkExec cannot be stopped before the kernel has executed the
// program. If exec hangs, a collection waits for this thread while all other threads are stopped: the whole agent
// hangs.
func holdOffGC() (restore func()) {
	var stats runtime.MemStats
	percent := debug.SetGCPercent(-1) // returns when the running collection has marked the heap
	runtime.ReadMemStats(&stats)      // returns when that collection needs to stop no more threads
	// If a collection was just starting, the first call did not see it.
	debug.SetGCPercent(-1)
	runtime.ReadMemStats(&stats)
	return func() { debug.SetGCPercent(percent) }
}

// forker makes every fork on one thread, which lives as long as the agent. PR_SET_PDEATHSIG, which ends a rank with its
// agent, takes effect when the thread that forked the rank ends.
func (c *Children) forker() {
	defer c.wg.Done()
	runtime.LockOSThread()
	for {
		select {
		case f := <-c.fork:
			f()
		case <-c.done:
			return // the thread is locked, so it ends with the goroutine
		}
	}
}

// forkHere is the Starter that Batch passes to f. It runs on the forker's thread, and forking is held. A process that
// is killed before it has executed its program counts as started.
func (c *Children) forkHere(path string, argv []string, attr *syscall.ProcAttr) (*Child, error) {
	if c.ending.Load() {
		return nil, errEnding
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	if c.killFirst.Load() {
		_ = os.WriteFile(procfs.Path(pid, "oom_score_adj"), []byte("1000"), 0) // the process may have ended
	}
	return c.Adopt(pid), nil
}

// KillUnexecuted kills the children of this process that c does not know. These are orphans, which the kernel has given
// to this process, and a process that Start is just starting: Start has forked it, but the process has not executed its
// program yet.
func (c *Children) KillUnexecuted() {
	for _, p := range Descendants(os.Getpid()) {
		c.mu.Lock()
		_, known := c.live[p.PID]
		c.mu.Unlock()
		if !known && p.Parent == os.Getpid() {
			p.Signal(unix.SIGKILL)
		}
	}
}

// Adopt returns a Child for the process pid, which is a child of another process. That process waits for the
// child and tells the caller how the child has ended; the caller then calls Settle. If the parent ends before
// the child, the child becomes a child of this process, which reaps it like its other children.
func (c *Children) Adopt(pid int) *Child {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := &Child{PID: pid, Exited: make(chan struct{})}
	c.live[pid] = ch
	return ch
}

// Settle records how ch, an adopted process, has ended.
func (c *Children) Settle(ch *Child, status unix.WaitStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live[ch.PID] == ch {
		delete(c.live, ch.PID)
	}
	if !ch.Ended() { // another process may already have its PID
		ch.Status, ch.When = status, hostclock.Now()
		close(ch.Exited)
	}
}

// setNone sets c.none. If the value changes, setNone announces that. The caller holds mu.
func (c *Children) setNone(none bool) {
	if c.none != none {
		c.none = none
		close(c.change)
		c.change = make(chan struct{})
	}
}

// reaper waits for the end of any child.
func (c *Children) reaper() {
	defer c.wg.Done()
	for {
		var info unix.Siginfo
		// WNOWAIT leaves the zombie, so that no other process gets its PID before the lock is held. So Signal never
		// signals another process that has got the PID.
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		seen := hostclock.Now()
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ECHILD:
			if !c.idle() {
				return
			}
			continue
		case err != nil:
			panic("waitid: " + err.Error()) // not possible with these arguments
		}
		c.reap(seen)
	}
}

// idle waits until there is a child again. It returns false if the agent is ending.
func (c *Children) idle() bool {
	c.forking.Lock()
	c.mu.Lock()
	// If there was a fork between waitid and this line, live has its child.
	c.setNone(len(c.live) == 0)
	none, change := c.none, c.change
	c.mu.Unlock()
	c.forking.Unlock()
	if !none {
		return true
	}
	select {
	case <-change:
		return true
	case <-c.done:
		return false
	}
}

func (c *Children) reap(seen time.Time) {
	c.forking.Lock()
	defer c.forking.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if ch := c.live[pid]; ch != nil {
			delete(c.live, pid)
			ch.Status, ch.When = status, seen
			close(ch.Exited)
		}
	}
}

// Signal sends a signal to the process group that ch leads. If ch has been reaped, another process may have its
// PID by now. Signal then sends nothing and returns false.
func (c *Children) Signal(ch *Child, sig unix.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live[ch.PID] != ch {
		return false
	}
	_ = unix.Kill(-ch.PID, sig) // ESRCH means that the group is gone already
	return true
}

// Empty reports whether this process has no children, and so no descendants. The returned channel is closed
// when that changes.
func (c *Children) Empty() (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.none, c.change
}

// Close ends the goroutines and waits for their end. All children must have ended, because nothing can wake the
// reaper while it waits for a child.
func (c *Children) Close() {
	close(c.done)
	c.wg.Wait()
}

// DevNull opens /dev/null for the standard streams of a process.
func DevNull() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) }
