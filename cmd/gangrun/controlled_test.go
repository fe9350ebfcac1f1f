package main_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// Limits for the end of a gang on this machine, whichever process was killed. gangrun needs about 3 s. The limits are
// much longer, because the machine may be slow. They only show that gangrun did not wait for a grace of minutes.
const (
	// goneLimit is the time after which no process of the job may be left.
	goneLimit = 30 * time.Second
	// exitLimit is the time after which no process of gangrun may be left.
	exitLimit = time.Minute
)

// patience is how long a test waits for anything else. A test that waits longer fails.
const patience = 5 * time.Minute

// controlled is a gangrun run that a test has started.
type controlled struct {
	*bench
	cmd    *exec.Cmd
	exited chan struct{} // closed when gangrun has ended

	mu     sync.Mutex
	agents map[int]bool // the PIDs of all agents that tree has found so far
}

// start starts gangrun run. Its standard error goes to the file "stderr" of the bench. Its standard output goes to
// stdout or, if that is nil, to the file "stdout".
func (b *bench) start(stdout *os.File, args ...string) *controlled {
	b.t.Helper()
	r := &controlled{bench: b, cmd: b.command(append([]string{"run", "-e", jobMark + "=" + b.mark}, args...)...), exited: make(chan struct{}), agents: map[int]bool{}}
	errs := b.create("stderr")
	defer errs.Close()
	if stdout == nil {
		stdout = b.create("stdout")
		defer stdout.Close()
	}
	r.cmd.Stdout, r.cmd.Stderr = stdout, errs
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(r.exited)
		_ = r.cmd.Wait() // the exit code is in ProcessState
	}()
	b.t.Cleanup(func() {
		if b.t.Failed() {
			said := b.file("stderr")
			b.t.Logf("gangrun said:\n%s", said[max(0, len(said)-4000):])
		}
		for _, pids := range b.marked() { // finds something only if the test has failed
			for pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = r.cmd.Process.Kill() // if marked has missed the process
		<-r.exited
	})
	return r
}

// tree has the processes below a controller. Each host has an outer watchdog, below it an inner one (watchdogs), and
// below that an agent. A leader is the first process of a rank. Processes that ranks have left behind are also
// children of the agent. They differ from leaders because they do not lead a process group, or have a session of their
// own.
type tree struct{ outer, watchdogs, agents, leaders []int }

func (r *controlled) tree() (found tree) {
	found.outer = children(r.cmd.Process.Pid)
	for _, outer := range found.outer {
		found.watchdogs = append(found.watchdogs, children(outer)...)
	}
	for _, watchdog := range found.watchdogs {
		for _, agent := range children(watchdog) {
			found.agents = append(found.agents, agent)
			_, own := groups(agent)
			r.mu.Lock()
			r.agents[agent] = true
			r.mu.Unlock()
			for _, pid := range children(agent) {
				if group, session := groups(pid); group == pid && session == own {
					found.leaders = append(found.leaders, pid)
				}
			}
		}
	}
	return found
}

// await waits for a condition. If gangrun ends meanwhile, the test fails.
func (r *controlled) await(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-r.exited:
			if !ok() {
				r.t.Fatalf("gangrun ended (%s) before %s", r.cmd.ProcessState, what)
			}
		case <-deadline:
			r.t.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}

// files waits until each rank has made a file with the name NAME.RANK.
func (r *controlled) files(name string, ranks int) {
	r.t.Helper()
	r.await(name+" of every rank", func() bool {
		for rank := range ranks {
			if _, err := os.Stat(filepath.Join(r.dir, fmt.Sprintf("%s.%d", name, rank))); err != nil {
				return false
			}
		}
		return true
	})
}

// journalled waits for an event in the journal of the only run.
func (r *controlled) journalled(what string, ok func(job.Event) bool) {
	r.t.Helper()
	r.await(what+" in the journal", func() bool { return slices.ContainsFunc(r.events(), ok) })
}

// started waits until the journal of the only run has the start of a rank, and returns the PID of the rank.
func (r *controlled) started(attempt, rank int) (pid int) {
	r.t.Helper()
	r.journalled(fmt.Sprintf("the start of rank %d in attempt %d", rank, attempt), func(e job.Event) bool {
		if e.Kind == job.KindStarted && e.Attempt == attempt && e.Rank == rank {
			pid = e.PID
		}
		return pid > 0
	})
	return pid
}

// strike sends a signal to the process pid, if that process is alive and belongs to this bench.
func (r *controlled) strike(pid int, sig unix.Signal) bool {
	r.t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		env, err := os.ReadFile(proc(pid, "environ"))
		if state := stat(pid); err != nil || len(state) == 0 || state[0] == "Z" {
			return false
		}
		if len(env) > 0 { // an empty environment means that the process is being executed
			return bytes.Contains(env, []byte(r.mark)) && unix.PidfdSendSignal(fd, sig, nil, 0) == nil
		}
	}
	r.t.Fatalf("process %d has had no environment for %s", pid, patience)
	return false
}

// vanish waits until no process of the job and of gangrun is left. It returns how long after the time since it last
// saw a process of the job.
func (r *controlled) vanish(since time.Time) (gone time.Duration) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for none := 0; none < 2; <-tick.C {
		left := r.marked()
		passed := time.Since(since)
		if len(left[jobMark]) > 0 {
			gone = passed
		}
		if none++; len(left[ownMark]) > 0 {
			none = 0
		}
		switch {
		case len(left[jobMark]) > 0 && passed > goneLimit:
			r.t.Errorf("%d processes of the job are left after %s: %v", len(left[jobMark]), passed, slices.Collect(maps.Values(left[jobMark])))
			return gone
		case len(left[ownMark]) > 0 && passed > exitLimit:
			r.t.Errorf("%d processes of gangrun are left after %s: %v", len(left[ownMark]), passed, slices.Collect(maps.Values(left[ownMark])))
			return gone
		}
	}
	<-r.exited
	return gone
}

// finish waits until gangrun has ended, and returns its exit code.
func (r *controlled) finish() int {
	r.t.Helper()
	select {
	case <-r.exited:
	case <-time.After(patience):
		r.t.Fatalf("gangrun has not ended within %s", patience)
	}
	return r.cmd.ProcessState.ExitCode()
}

// leftovers returns the files that gangrun has left in the temporary directory, and the control groups that its agents
// have left.
func (r *controlled) leftovers() []string {
	found, err := filepath.Glob(filepath.Join(r.dir, "tmp", "*", "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			_ = filepath.WalkDir(fields[4], func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					if pid, ok := strings.CutPrefix(d.Name(), "gangrun."); ok {
						pid, _, _ = strings.Cut(pid, ".") // the name also has the number of the PID namespace
						if n, _ := strconv.Atoi(pid); r.agents[n] {
							found = append(found, path)
						}
					}
				}
				return nil
			})
		}
	}
	return found
}
