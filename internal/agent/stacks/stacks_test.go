package stacks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/faulthandler"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/internal/testexec"
)

// TestNative checks the stacks of C programs that hang, with each tool.
func TestNative(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	fifo := filepath.Join(b.dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	deadlock := b.start(nil, b.hangs, "deadlock")
	spin := b.start(nil, b.hangs, "spin")
	read := b.start(nil, b.hangs, "fifo", fifo)
	behind := b.start(nil, "/bin/sh", "-c", b.hangs+" spin; exit 1")
	piped := b.start(nil, "/bin/sh", "-c", "sleep 1000 | "+b.hangs+" spin; exit 1")
	for _, pid := range []int{deadlock, read, behind, piped} {
		b.eventually(pid, 'S')
	}
	for _, tool := range []job.StackTool{job.StackEU, job.StackGDB, job.StackProc} {
		t.Run(string(tool), func(t *testing.T) {
			frames := tool != job.StackProc
			c := b.only(tool)
			for _, want := range []struct {
				pid      int
				function string
				line     int
				state    job.ProcessState
				call, on string
			}{
				{deadlock, "lock_b", 12, job.ProcessSleeping, "futex", ""},
				{spin, "spin", 37, job.ProcessRunning, "", ""},
				{read, "read_fifo", 46, job.ProcessSleeping, "read", fifo},
				{behind, "spin", 37, job.ProcessRunning, "", ""},
				{piped, "spin", 37, job.ProcessRunning, "", ""},
			} {
				got := b.one(c, Target{Rank: 3, PID: want.pid})
				main := got.Threads[0]
				if got.Tool != tool || !main.Main || main.Name != "hangs" || main.State != want.state || main.Syscall != want.call || main.On != want.on {
					t.Errorf("%s: got %+v", want.function, got)
				}
				if frames && !within(main, want.function, "hangs.c", want.line) && !within(main, want.function, "hangs.c", want.line-1) {
					t.Errorf("%s: got %+v", want.function, main.Frames)
				}
				if frames != (got.Error == "") {
					t.Errorf("%s: got the error %q", want.function, got.Error)
				}
			}
			got := b.one(c, Target{PID: deadlock})
			if len(got.Threads) != 2 || frames && !within(got.Threads[1], "other", "hangs.c", 18) {
				t.Errorf("got %+v of the other thread", got.Threads)
			}
			if got := b.one(c, Target{PID: behind}); len(got.Threads) != 2 || got.Threads[1].Name != "sh" || got.Threads[1].PID != behind || got.Threads[1].Main {
				t.Errorf("got %+v, want the shell after its child", got.Threads)
			}
			b.eventually(spin, 'R')
			b.eventually(deadlock, 'S')
		})
	}
}

// TestUndisturbed checks that a stopped process stays stopped, and that other processes go on, even if a tool
// is killed while it works.
func TestUndisturbed(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	pid := b.start(nil, b.hangs, "spin")
	b.signal(pid, unix.SIGSTOP)
	b.eventually(pid, 'T')
	for range 3 {
		got := b.one(b.only(job.StackEU, job.StackGDB), Target{PID: pid})
		if got.Tool != job.StackProc || got.Threads[0].State != job.ProcessStopped || got.Error == "" {
			t.Errorf("got %+v", got)
		}
		b.eventually(pid, 'T')
	}
	b.signal(pid, unix.SIGCONT)
	b.eventually(pid, 'R')

	// This tool stops the process and fails. On a busy host, the process stops some time after that.
	rude := agenttest.WriteFile(t, filepath.Join(b.dir, "gdb"), "#!/bin/sh\nkill -STOP "+fmt.Sprint(pid)+"; echo ptrace: Operation not permitted. >&2; exit 1\n", 0o755)
	for range 10 {
		got := b.one(b.only(job.StackTool(rude)), Target{PID: pid})
		if got.Tool != job.StackProc || !strings.HasPrefix(got.Error, "gdb may not look into the process: ") {
			t.Errorf("got %+v", got)
		}
		b.eventually(pid, 'R')
	}

	// This gdb does not end by itself, so it is killed while it traces the process.
	hung := agenttest.WriteFile(t, filepath.Join(b.dir, "hung", "gdb"),
		"#!/bin/sh\nexec /usr/bin/gdb -nx -batch -p "+fmt.Sprint(pid)+" -ex 'shell sleep 1000'\n", 0o755)
	began := time.Now()
	got := b.one(b.only(job.StackTool(hung)), Target{PID: pid})
	if took := time.Since(began); took < toolLimit || took > toolsUntil+5*time.Second {
		t.Errorf("it took %v", took)
	}
	if got.Tool != job.StackProc || got.Error == "" || got.Threads[0].State != job.ProcessRunning {
		t.Errorf("got %+v", got)
	}
	b.eventually(pid, 'R')
}

// TestZombieMain checks a process whose main thread has ended while another thread goes on.
func TestZombieMain(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	pid := b.start(nil, b.hangs, "leave")
	b.eventually(pid, 'Z')
	threads, err := filepath.Glob(procfs.Path(pid, "task/*"))
	if err != nil || len(threads) != 2 {
		t.Fatalf("it has the threads %q, %v", threads, err)
	}
	for _, thread := range threads {
		if tid, _ := strconv.Atoi(filepath.Base(thread)); tid != pid {
			b.eventually(tid, 'S')
		}
	}
	for _, tool := range []job.StackTool{job.StackEU, job.StackGDB} {
		got := b.one(b.only(tool), Target{PID: pid})
		if len(got.Threads) != 2 || got.Threads[0].State != job.ProcessZombie || got.Threads[1].State != job.ProcessSleeping || got.Threads[1].Syscall != "pause" {
			t.Errorf("%s: got %+v", tool, got)
		}
		t.Logf("%s: %+v", tool, got)
	}
	b.eventually(pid, 'Z')
}

func TestEnded(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	got := b.only().Collect(t.Context(), []Target{{Rank: 1, PID: 1 << 30}})
	if len(got) != 1 || got[0].Rank != 1 || len(got[0].Threads) != 0 || got[0].Error != "it has ended" {
		t.Errorf("got %+v", got)
	}
}

const blocked = `
import ctypes, socket, sys, threading, time
a, b = socket.socketpair()
lock = threading.Lock()
lock.acquire()
began = threading.Barrier(2)
def loader():
    began.wait()
    lock.acquire()
def receive():
    print("ready", flush=True)
    a.recv(1)
def holds_gil():
    print("ready", flush=True)
    ctypes.PyDLL(None).recv(a.fileno(), ctypes.create_string_buffer(1), 1, 0)
threading.Thread(target=loader, daemon=True).start()
began.wait()
globals()[sys.argv[1]]()
`

// TestPython checks that Python programs that were started with faulthandler write their frames, even while a
// function in C holds the global interpreter lock.
func TestPython(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	module := t.TempDir()
	if err := faulthandler.Install(module); err != nil {
		t.Fatal(err)
	}
	script := agenttest.WriteFile(t, filepath.Join(b.dir, "train.py"), blocked, 0o644)
	for _, c := range []struct {
		function string
		line     int
		call, on string
		inner    []string // one of these functions in C is the innermost frame
	}{
		{"receive", 12, "recvfrom", "a socket", []string{"recv", "__libc_recv", "__recv"}},
		{"holds_gil", 15, "recvfrom", "a socket", []string{"recv", "__libc_recv", "__recv"}},
	} {
		t.Run(c.function, func(t *testing.T) {
			faults := filepath.Join(b.dir, "faults."+c.function)
			pid := b.start(faulthandler.Environ("", module, faults), python, script, c.function)
			target := Target{PID: pid, Faults: faults}
			for _, tools := range [][]job.StackTool{nil, {job.StackEU}, {job.StackGDB}, {job.StackGDB}} {
				b.eventually(pid, 'S') // the tool before has let it go on
				got := b.one(b.only(tools...), target)
				main := got.Threads[0]
				if got.Tool != job.StackFaulthandler || main.Syscall != c.call || main.On != c.on || !within(main, c.function, "train.py", c.line) || !within(main, "<module>", "train.py", 18) {
					t.Fatalf("%v: got %+v", tools, got)
				}
				if inner := names(main)[0]; tools != nil && !slices.Contains(c.inner, inner) || tools == nil && inner != c.function {
					t.Errorf("%v: got the frames %v", tools, names(main))
				}
				if last := got.Threads[len(got.Threads)-1]; len(got.Threads) != 2 || !within(last, "loader", "train.py", 0) || within(last, "receive", "", 0) {
					t.Errorf("%v: got %+v", tools, got.Threads)
				}
			}
			if data, err := os.ReadFile(faults); err != nil || strings.Count(string(data), "Current thread") != 1 {
				t.Errorf("the file has %q, %v; want only the newest stacks", data, err)
			}
			b.eventually(pid, 'S')
		})
	}
	t.Run("not registered", func(t *testing.T) {
		pid := b.start(nil, python, script, "receive")
		b.eventually(pid, 'S')
		got := b.one(b.only(job.StackEU), Target{PID: pid, Faults: filepath.Join(b.dir, "faults.none")})
		if got.Tool != job.StackEU || !strings.Contains(got.Error, "has not registered faulthandler") || !within(got.Threads[0], "_PyEval_EvalFrameDefault", "", 0) {
			t.Errorf("got %+v", got)
		}
		b.eventually(pid, 'S')
	})
	t.Run("stopped", func(t *testing.T) {
		faults := filepath.Join(b.dir, "faults.stopped")
		pid := b.start(faulthandler.Environ("", module, faults), python, script, "receive")
		b.signal(pid, unix.SIGSTOP)
		b.eventually(pid, 'T')
		if got := b.one(b.only(job.StackEU), Target{PID: pid, Faults: faults}); got.Tool != job.StackProc || len(got.Threads[0].Frames) != 0 {
			t.Errorf("got %+v", got)
		}
		b.eventually(pid, 'T')
		if pending(pid, pid, faulthandler.Signal) {
			t.Error("a signal waits for the process")
		}
	})
	t.Run("children", func(t *testing.T) {
		faults := filepath.Join(b.dir, "faults.children")
		code := `
import os, time
def next_batch():
    time.sleep(1000)
if os.fork() == 0:
    next_batch()
print("ready", flush=True)
os.wait()
`
		pid := b.start(faulthandler.Environ("", module, faults), python, agenttest.WriteFile(t, filepath.Join(b.dir, "loader.py"), code, 0o644))
		b.eventually(procfs.Children(pid)[0], 'S')
		b.eventually(pid, 'S')
		got := b.one(b.only(), Target{PID: pid, Faults: faults})
		if len(got.Threads) != 2 || !within(got.Threads[0], "next_batch", "loader.py", 4) || !within(got.Threads[1], "<module>", "loader.py", 8) {
			t.Errorf("got %+v, want the child, for which its parent waits, and the parent", got)
		}
	})
}

// TestDiskSleep checks that no debugger is used for a process that waits in the kernel. Its frames come from
// the kernel's own stack.
func TestDiskSleep(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	pid := b.start(nil, b.hangs, "kernel")
	b.eventually(pid, 'D')
	got := b.one(b.only(job.StackEU, job.StackGDB), Target{PID: pid})
	if got.Tool != job.StackProc || got.Error == "" || got.Threads[0].State != job.ProcessDisk {
		t.Errorf("got %+v", got)
	}
	if f := got.Threads[0].Frames; len(f) == 0 || f[0].File != job.KernelFile {
		t.Errorf("got the frames %+v, want the kernel's", f)
	}
	b.eventually(pid, 'D')
}

// TestExecHangs checks a process whose program the kernel begins to execute. Until then, the kernel blocks
// readers of some files of /proc.
func TestExecHangs(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	hanging, release := testexec.Hanging(t)
	pid := b.start(nil, "/bin/sh", "-c", "echo ready; exec "+hanging+" 1000")
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if wait, _ := os.ReadFile(procfs.Path(pid, "wchan")); strings.Contains(string(wait), "fanotify") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the exec does not hang")
		}
	}
	c := b.only(job.StackEU, job.StackGDB)
	for range 2 {
		began := time.Now()
		got := b.one(c, Target{PID: pid})
		if main := got.Threads[0]; got.Tool != job.StackProc || !strings.Contains(main.Wait, "fanotify") {
			t.Errorf("got %+v", got)
		}
		if took := time.Since(began); took > toolsUntil+5*time.Second {
			t.Errorf("it took %v", took)
		}
		if held := len(c.readers.busy); held > 1 {
			t.Errorf("%d readers are held up", held)
		}
	}
	release()
	c.Close(t.Context())
	if len(c.readers.busy) != 0 {
		t.Error("a reader is held up although the exec goes on")
	}
}

// TestPySpy checks that the output of py-spy is parsed and joined with the native frames, and that its errors
// are reported. The real py-spy prints such JSON after its warnings.
func TestPySpy(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	pid := b.start(nil, python, agenttest.WriteFile(t, filepath.Join(b.dir, "train.py"), blocked, 0o644), "receive")
	b.eventually(pid, 'S')
	const printed = `[2026-01-02T03:04:05Z WARN  py_spy::python_spy] failed to get native stack
[
  {
    "pid": %[1]d, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": %[1]d, "active": false, "owns_gil": false,
    "frames": [
      {"name": "receive", "filename": "/home/u/train.py", "module": null, "short_filename": "train.py", "line": 12, "locals": null},
      {"name": "<module>", "filename": "/home/u/train.py", "module": null, "short_filename": "train.py", "line": 18, "locals": null}
    ],
    "process_info": null
  }
]
`
	script := "#!/bin/sh\n[ \"$*\" = 'dump --pid %[1]d --nonblocking --json' ] || exit 2\ncat <<'E'\n" + printed + "E\n"
	spy := agenttest.WriteFile(t, filepath.Join(b.dir, "py-spy"), fmt.Sprintf(script, pid), 0o755)
	got := b.one(b.only(job.StackTool(spy), job.StackEU), Target{PID: pid})
	want := []job.Frame{{Function: "receive", File: "/home/u/train.py", Line: 12}, {Function: "<module>", File: "/home/u/train.py", Line: 18}}
	if f := got.Threads[0].Frames; got.Tool != job.StackPySpy || got.Error != "" || len(f) != 3 || !f[0].Native || !slices.Equal(f[1:], want) {
		t.Errorf("got %+v", got)
	}
	agenttest.WriteFile(t, spy, "#!/bin/sh\necho 'Error: Permission Denied: Try running again with elevated permissions' >&2; exit 1\n", 0o755)
	got = b.one(b.only(job.StackTool(spy)), Target{PID: pid})
	if got.Tool != job.StackProc || !strings.HasPrefix(got.Error, "py-spy may not look into the process: ") {
		t.Errorf("got %+v", got)
	}
}

// BenchmarkCollect collects the stacks of 16 ranks with each tool.
func BenchmarkCollect(b *testing.B) {
	hangs := filepath.Join(b.TempDir(), "hangs")
	if out, err := exec.Command("gcc", "-g", "-O0", "-pthread", "-o", hangs, "testdata/hangs.c").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	children, err := process.NewChildren()
	if err != nil {
		b.Fatal(err)
	}
	defer children.Close()
	defer children.KillAll(nil)
	var targets []Target
	for r := range 16 {
		ch, err := children.Start(hangs, []string{hangs, "deadlock"}, &syscall.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{}})
		if err != nil {
			b.Fatal(err)
		}
		targets = append(targets, Target{Rank: r, PID: ch.PID})
	}
	for _, tool := range []job.StackTool{job.StackProc, job.StackEU, job.StackGDB} {
		b.Run(string(tool), func(b *testing.B) {
			c := &Collector{Run: onlyTools{children, []job.StackTool{tool}}}
			for b.Loop() {
				for _, s := range c.Collect(b.Context(), targets) {
					if s.Tool != tool {
						b.Fatalf("got %+v", s)
					}
				}
			}
		})
	}
}
