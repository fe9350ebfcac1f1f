package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
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
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/testbuild"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// When nothing of a gang on this machine is left, whoever is killed. gangrun needs
// some 3 s for that, as long as the machine does not stand still: these bounds tell
// that from a grace of minutes, not a quick machine from a slow one.
const (
	// goneLimit is when the last process of the job is gone.
	goneLimit = 30 * time.Second
	// exitLimit is when gangrun has ended.
	exitLimit = time.Minute
)

// patience bounds every other wait. It is not a measure of speed: a test that
// needs it has failed.
const patience = 2 * time.Minute

// binary builds gangrun as users have it, static and without the race detector,
// once for all tests of a process.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gangrun-test-")
	if err != nil {
		return "", err
	}
	// A shell that outlives the tests, however they end, removes the directory.
	r, w, err := os.Pipe()
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	defer r.Close()
	sweeper := exec.Command("sh", "-c", `read -r _; exec rm -rf "$0"`, dir)
	sweeper.Stdin, sweeper.SysProcAttr = r, &syscall.SysProcAttr{Setsid: true}
	if err := sweeper.Start(); err != nil {
		return "", errors.Join(err, w.Close(), os.RemoveAll(dir))
	}
	alive = w
	path := filepath.Join(dir, "gangrun")
	return path, testbuild.Gangrun(path)
})

// alive is open as long as this process lives; see binary.
var alive *os.File

// Markers in the environment by which processes are found, wherever they have
// gone: of gangrun and all that came of it, and of the job alone.
const (
	ownMark = "GANGRUN_TEST_OWN"
	jobMark = "GANGRUN_TEST_JOB"
)

// bench is a directory with a home of runs in it, for one test.
type bench struct {
	t      testing.TB
	binary string
	dir    string // where commands run
	mark   string
	env    []string // of commands, besides that of this process
}

func newBench(t testing.TB) *bench {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, binary: path, dir: t.TempDir()}
	b.mark = filepath.Base(filepath.Dir(b.dir)) + filepath.Base(b.dir)
	if err := os.Mkdir(filepath.Join(b.dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

// command is gangrun with these arguments, at home in the bench.
func (b *bench) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.binary, args...)
	cmd.Dir = b.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GANGRUN_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GANGRUN_HOME="+filepath.Join(b.dir, "home"), "TMPDIR="+filepath.Join(b.dir, "tmp"), ownMark+"="+b.mark)
	cmd.Env = append(cmd.Env, b.env...)
	return cmd
}

// ask runs a command that must succeed and returns its standard output.
func (b *bench) ask(args ...string) []byte {
	b.t.Helper()
	var out, errs bytes.Buffer
	cmd := b.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		b.t.Fatalf("gangrun %s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out.Bytes()
}

// list returns what gangrun ps tells.
func (b *bench) list() (runs []home.Summary) {
	b.t.Helper()
	decode(b.t, b.ask("ps", "-o", "json"), &runs)
	return runs
}

// status is what gangrun status -o json tells, as far as tests look at it.
type status struct {
	runreport.Report
	Now []struct {
		Rank, PID int
		State     string
	} `json:"ranks_now"`
}

func (b *bench) status() (s status) {
	b.t.Helper()
	decode(b.t, b.ask("status", "-o", "json"), &s)
	return s
}

func decode(t testing.TB, data []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%v in:\n%s", err, data)
	}
}

// file returns the content of a file of the bench, "" when there is none.
func (b *bench) file(name string) string {
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	return string(data)
}

// controlled is a gangrun run that has been started.
type controlled struct {
	*bench
	cmd    *exec.Cmd
	exited chan struct{} // closed when gangrun has ended

	mu     sync.Mutex
	agents map[int]bool // every agent that was ever seen
}

// start starts gangrun run. Its standard error goes to the file "stderr" of the
// bench, and its standard output to "stdout" unless it is to go elsewhere; both
// may go to "stderr".
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
		_ = r.cmd.Wait() // ProcessState tells
	}()
	b.t.Cleanup(func() {
		if b.t.Failed() {
			said := b.file("stderr")
			b.t.Logf("gangrun said:\n%s", said[max(0, len(said)-4000):])
		}
		for _, pids := range b.marked() { // nothing, unless the test has failed
			for pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = r.cmd.Process.Kill() // it may have been overlooked
		<-r.exited
	})
	return r
}

// create makes an empty file of the bench, to append to.
func (b *bench) create(name string) *os.File {
	b.t.Helper()
	f, err := os.OpenFile(filepath.Join(b.dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

// marked returns the live processes with each of the markers, with their
// command lines. One that is being executed just now may be missing: who wants
// to know that none is left asks twice.
func (b *bench) marked() map[string]map[int]string {
	found := map[string]map[int]string{ownMark: {}, jobMark: {}}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(proc(pid, "environ")) // empty for a zombie
		if err != nil {
			continue
		}
		for _, mark := range []string{ownMark, jobMark} {
			if bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"="+b.mark+"\x00")) {
				line, _ := os.ReadFile(proc(pid, "cmdline"))
				found[mark][pid] = strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			}
		}
	}
	return found
}

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// tree is what stands below a controller. The watchdogs are the inner ones, of which each
// has an outer one above it. A leader is a rank's first process;
// what ranks have left behind is an agent's child too, but leads no group or
// has a session of its own.
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

func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(proc(pid, "task/*/children"))
	for _, list := range lists {
		data, _ := os.ReadFile(list) // it may have ended
		for _, field := range bytes.Fields(data) {
			if n, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, n)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// stat returns fields of /proc/PID/stat from the third one on, which is a
// process's state; nil when it is gone.
func stat(pid int) []string {
	data, _ := os.ReadFile(proc(pid, "stat"))
	if i := bytes.LastIndexByte(data, ')'); i >= 0 {
		return strings.Fields(string(data[i+1:]))
	}
	return nil
}

// begun returns when a process began, as the kernel counts it, which tells it from
// another one with its PID; "" when it is gone.
func begun(pid int) string {
	if fields := stat(pid); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// groups returns the process group and the session of a process.
func groups(pid int) (group, session int) {
	if fields := stat(pid); len(fields) > 3 {
		group, _ = strconv.Atoi(fields[2])
		session, _ = strconv.Atoi(fields[3])
	}
	return group, session
}

func parent(pid int) (ppid int) {
	if fields := stat(pid); len(fields) > 1 {
		ppid, _ = strconv.Atoi(fields[1])
	}
	return ppid
}

// await waits for a condition; a gangrun that ends meanwhile fails the test.
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

// files waits for a file NAME.RANK of each rank.
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

// started waits for the start of a rank in the journal of the only run and returns
// its PID.
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

// events returns what the journal of the only run says so far.
func (b *bench) events() []job.Event {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.dir, "home/runs/*/journal.jsonl"))
	if err != nil || len(paths) > 1 {
		b.t.Fatalf("journals %q, %v, want one", paths, err)
	}
	if len(paths) == 0 {
		return nil
	}
	events, _, err := journal.Replay(paths[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

// strike sends a signal to exactly the process that is meant, if it is alive
// and of this bench.
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
		if len(env) > 0 { // else it is being executed
			return bytes.Contains(env, []byte(r.mark)) && unix.PidfdSendSignal(fd, sig, nil, 0) == nil
		}
	}
	r.t.Fatalf("process %d has had no environment for %s", pid, patience)
	return false
}

// vanish watches what is left after the moment since, until nothing is, and
// returns how long the last process of the job was seen.
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

// leftovers returns what gangrun has left in the temporary directory, and the
// cgroups of its agents.
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
						pid, _, _ = strings.Cut(pid, ".") // the number of its PID namespace follows
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
