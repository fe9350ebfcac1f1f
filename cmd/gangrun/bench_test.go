package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/testbuild"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// binary builds gangrun in the form that users have: static and without the race detector. It does so once for all
// tests of a process.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gangrun-test-")
	if err != nil {
		return "", err
	}
	// A shell removes the directory when this process has ended in any way. The shell is in a session of its own.
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

// alive is the end of a pipe that stays open as long as this process lives. When it closes, the shell of binary
// removes the directory.
var alive *os.File

// The tests find processes by these variables in their environment. All processes of gangrun and of its jobs have
// ownMark. The processes of the job also have jobMark.
const (
	ownMark = "GANGRUN_TEST_OWN"
	jobMark = "GANGRUN_TEST_JOB"
)

// bench is the directory of one test. It has its own home for runs.
type bench struct {
	t      testing.TB
	binary string
	dir    string // the directory in which commands run
	mark   string
	env    []string // additional environment of the commands
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

// command returns a command that runs gangrun with these arguments. Its home is in the bench.
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

// list returns the runs that gangrun ps lists.
func (b *bench) list() (runs []home.Summary) {
	b.t.Helper()
	decode(b.t, b.ask("ps", "-o", "json"), &runs)
	return runs
}

// status has the part of the output of gangrun status -o json that tests look at.
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

// file returns the content of a file of the bench. It returns "" if there is no such file.
func (b *bench) file(name string) string {
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	return string(data)
}

// create makes an empty file in the bench, and opens it for appending.
func (b *bench) create(name string) *os.File {
	b.t.Helper()
	f, err := os.OpenFile(filepath.Join(b.dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

// marked returns the live processes with each of the markers, with their command lines. It may miss a process that is
// being executed at the moment. So a test that wants to know that no process is left must call marked twice.
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
		env, err := os.ReadFile(proc(pid, "environ")) // empty if the process is a zombie
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

// events returns the events in the journal of the only run so far.
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

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(proc(pid, "task/*/children"))
	for _, list := range lists {
		data, _ := os.ReadFile(list) // the process may have ended
		for _, field := range bytes.Fields(data) {
			if n, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, n)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// stat returns the fields of /proc/PID/stat from the third field on, which is the state of the process. It returns nil
// if the process is gone.
func stat(pid int) []string {
	data, _ := os.ReadFile(proc(pid, "stat"))
	if i := bytes.LastIndexByte(data, ')'); i >= 0 {
		return strings.Fields(string(data[i+1:]))
	}
	return nil
}

// begun returns the time at which a process began, in the kernel's form. It distinguishes the process from another
// process with the same PID. It is "" if the process is gone.
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
