package stacks

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/internal/procfs"
)

const python = "/usr/bin/python3"

// bed starts programs that hang, and collects their stacks.
type bed struct {
	*testing.T
	children *process.Children
	hangs    string // the program of testdata/hangs.c
	dir      string
}

// newBed must be called in a process of the test's own.
func newBed(t *testing.T) *bed {
	t.Helper()
	for _, tool := range []string{"gcc", "gdb", "eu-stack", python} {
		if _, err := exec.LookPath(tool); err != nil {
			noskip.Skip(t, "no %s", tool)
		}
	}
	b := &bed{T: t, dir: t.TempDir()}
	b.hangs = filepath.Join(b.dir, "hangs")
	if out, err := exec.Command("gcc", "-g", "-O0", "-pthread", "-o", b.hangs, "testdata/hangs.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b.children = processtest.New(t)
	return b
}

// run starts a program and returns it, with the lines that it prints.
func (b *bed) run(env []string, path string, argv ...string) (*process.Child, *bufio.Scanner) {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.Cleanup(func() { _ = r.Close() })
	null, err := process.DevNull()
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	ch, err := b.children.Start(path, argv, &syscall.ProcAttr{
		Dir: b.dir, Env: append(os.Environ(), env...), Files: []uintptr{null.Fd(), w.Fd(), 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		b.Fatal(err)
	}
	return ch, bufio.NewScanner(r)
}

// start starts a program and waits until it has printed "ready".
func (b *bed) start(env []string, path string, args ...string) int {
	b.Helper()
	ch, lines := b.run(env, path, append([]string{path}, args...)...)
	b.Cleanup(func() { _ = unix.Kill(ch.PID, unix.SIGKILL) }) // also if its main thread has ended
	for lines.Scan() {
		if lines.Text() == "ready" {
			return ch.PID
		}
	}
	b.Fatal("the program ended before it was ready")
	return 0
}

// eventually waits until the main thread of a process is in a state.
func (b *bed) eventually(pid int, state byte) {
	b.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		stat, err := procfs.ReadStat(pid)
		if err != nil {
			b.Fatal(err)
		}
		if stat.State == state {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("process %d is in state %c, want %c", pid, stat.State, state)
		}
	}
}

func (b *bed) signal(pid int, sig unix.Signal) {
	b.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		b.Fatal(err)
	}
}

// only returns a Collector for a host that has only the given tools.
func (b *bed) only(tools ...job.StackTool) *Collector {
	b.Helper()
	c := &Collector{Host: "node1", Run: onlyTools{b.children, tools}}
	b.Cleanup(func() { c.Close(b.Context()) })
	return c
}

// one collects the stacks of one process.
func (b *bed) one(c *Collector, t Target) job.RankStack {
	b.Helper()
	all := c.Collect(b.Context(), []Target{t})
	if len(all) != 1 || len(all[0].Threads) == 0 || all[0].Rank != t.Rank || all[0].Host != "node1" {
		b.Fatalf("got %+v", all)
	}
	return all[0]
}

// names returns the functions of a thread, innermost first.
func names(t job.ThreadStack) (names []string) {
	for _, f := range t.Frames {
		names = append(names, f.Function)
	}
	return names
}

// within reports whether a stack has a function. It also compares file and line, unless they are zero.
func within(t job.ThreadStack, function, file string, line int) bool {
	return slices.ContainsFunc(t.Frames, func(f job.Frame) bool {
		return f.Function == function && (file == "" || filepath.Base(f.File) == file) && (line == 0 || f.Line == line)
	})
}
