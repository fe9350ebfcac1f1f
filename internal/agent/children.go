package agent

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
)

// children starts and reaps every process below this agent, adopted orphans
// included. It is the only caller of wait in the process.
type children struct {
	fork   chan func()   // what the forker is to do
	done   chan struct{} // closed by close
	wg     sync.WaitGroup
	ending atomic.Bool // nothing may be started any more

	// forking is held while a batch is forked, which takes as long as the slowest
	// file system takes to execute its programs. Only the reaper waits for it: it
	// must not reap a PID that is not in live yet.
	forking sync.Mutex

	mu     sync.Mutex     // never held across a system call that may block
	live   map[int]*child // by PID, until reaped
	none   bool           // the kernel says that there is no child at all
	change chan struct{}  // closed and replaced when none changes
}

type child struct {
	pid    int
	exited chan struct{} // closed once status and when are set
	status unix.WaitStatus
	when   time.Time
}

// newChildren makes this process a subreaper and starts the two goroutines
// that fork and reap; close ends and waits for them.
func newChildren() (*children, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	c := &children{
		fork:   make(chan func()),
		done:   make(chan struct{}),
		live:   map[int]*child{},
		none:   true,
		change: make(chan struct{}),
	}
	c.wg.Add(2)
	go c.forker()
	go c.reaper()
	return c, nil
}

// starter forks and executes a program. The attributes' Sys must not be nil.
type starter func(path string, argv []string, attr *syscall.ProcAttr) (*child, error)

var errEnding = errors.New("the agent is ending")

// start starts one program.
func (c *children) start(path string, argv []string, attr *syscall.ProcAttr) (ch *child, err error) {
	if !c.batch(func(start starter) { ch, err = start(path, argv, attr) }) {
		return nil, errEnding
	}
	return ch, err
}

// batch runs f on the forker's thread, where starting programs in a row costs no
// hand-over, and nothing is reaped meanwhile: what competes with the forks slows
// them down. It is false when the agent is ending and f was not run.
func (c *children) batch(f func(starter)) bool {
	done := make(chan struct{})
	select {
	case c.fork <- func() {
		defer close(done)
		c.forking.Lock()
		defer c.forking.Unlock()
		c.mu.Lock()
		c.setNone(false) // what is being forked is in no list yet
		c.mu.Unlock()
		// syscall.ForkExec keeps its thread from the Go runtime until the program has
		// been executed. A garbage collection waits for that thread and stops all
		// others meanwhile, so an exec that hangs would stop the whole agent.
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		f(c.forkHere)
	}:
		<-done
		return true
	case <-c.done:
		return false
	}
}

// forker does every fork on one thread that lives as long as the agent:
// PR_SET_PDEATHSIG, which ends a rank with its agent, fires when the thread
// that forked it ends.
func (c *children) forker() {
	defer c.wg.Done()
	runtime.LockOSThread()
	for {
		select {
		case f := <-c.fork:
			f()
		case <-c.done:
			return // the thread ends with the goroutine, locked as it is
		}
	}
}

// forkHere is the starter; it runs on the forker's thread with forking held. A
// process that is killed while it is being executed counts as started.
func (c *children) forkHere(path string, argv []string, attr *syscall.ProcAttr) (*child, error) {
	if c.ending.Load() {
		return nil, errEnding
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	return c.adopt(pid), nil
}

// killUnexecuted kills the children that are not known yet: a process that is being
// forked and has not executed its program, and an orphan.
func (c *children) killUnexecuted() {
	for _, p := range descendants(os.Getpid()) {
		c.mu.Lock()
		_, known := c.live[p.pid]
		c.mu.Unlock()
		if !known && p.parent == os.Getpid() {
			p.send(unix.SIGKILL)
		}
	}
}

// adopt returns a child for a process that another one started and waits for:
// who hears from that one how it ended calls settle. If it becomes a child of
// this process, it is reaped like the others.
func (c *children) adopt(pid int) *child {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := &child{pid: pid, exited: make(chan struct{})}
	c.live[pid] = ch
	return ch
}

// settle says how an adopted process has ended.
func (c *children) settle(ch *child, status unix.WaitStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live[ch.pid] == ch {
		delete(c.live, ch.pid)
	}
	if !closed(ch.exited) { // its PID may be another's already
		ch.status, ch.when = status, now()
		close(ch.exited)
	}
}

// setNone is called with the lock held.
func (c *children) setNone(none bool) {
	if c.none != none {
		c.none = none
		close(c.change)
		c.change = make(chan struct{})
	}
}

// reaper waits for whatever child ends next.
func (c *children) reaper() {
	defer c.wg.Done()
	for {
		var info unix.Siginfo
		// WNOWAIT leaves the zombie, so that its PID stays taken until the lock is
		// held: signal never hits a PID that has been given to somebody else.
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		seen := now()
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

// idle waits until there is a child again; false when the agent is ending.
func (c *children) idle() bool {
	c.forking.Lock()
	c.mu.Lock()
	// A fork between waitid and here is seen in live.
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

func (c *children) reap(seen time.Time) {
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
			ch.status, ch.when = status, seen
			close(ch.exited)
		}
	}
}

// signal sends to the process group that ch leads, if ch has not been reaped,
// and reports whether it has: its PID may be another's since.
func (c *children) signal(ch *child, sig unix.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live[ch.pid] != ch {
		return false
	}
	_ = unix.Kill(-ch.pid, sig) // ESRCH: the group is gone, which is the aim
	return true
}

// empty returns whether there is no child at all, and so no descendant, and a
// channel that is closed when that changes.
func (c *children) empty() (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.none, c.change
}

// close ends the goroutines. All children must be gone: the reaper cannot be
// woken from a wait for one that lives.
func (c *children) close() {
	close(c.done)
	c.wg.Wait()
}

// devNull opens /dev/null for the standard streams of helpers.
func devNull() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) }
