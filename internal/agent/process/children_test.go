package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
)

// mustShell is like processtest.Shell, but fails the test on an error. Only the goroutine of the test may call it.
func mustShell(t *testing.T, c *process.Children, script string, out *os.File) *process.Child {
	t.Helper()
	ch, err := processtest.Shell(c.Start, script, out)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// childless waits until this process has no children.
func childless(t *testing.T, c *process.Children) {
	t.Helper()
	for {
		empty, change := c.Empty()
		if empty {
			return
		}
		select {
		case <-change:
		case <-time.After(time.Minute):
			t.Fatalf("after a minute there still is a child: %+v", process.Descendants(os.Getpid()))
		}
	}
}

func TestChildren(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	t.Run("exit", func(t *testing.T) {
		c := processtest.New(t)
		if empty, _ := c.Empty(); !empty {
			t.Error("there is a child before the first was started")
		}
		before := time.Now()
		for script, want := range map[string]unix.WaitStatus{"exit 0": 0, "exit 3": 3 << 8, "exit 255": 255 << 8, "kill -TERM $$": 15, "kill -KILL $$": 9} {
			ch := mustShell(t, c, script, nil)
			<-ch.Exited
			if ch.Status&^0x80 != want {
				t.Errorf("%q: ended with %#x, want %#x", script, uint32(ch.Status), uint32(want))
			}
			if ch.When.Before(before) || ch.When.After(time.Now()) {
				t.Errorf("%q: ended at %s, which was not while the test ran", script, ch.When)
			}
		}
		childless(t, c)
	})
	t.Run("many at once", func(t *testing.T) {
		c := processtest.New(t)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				ch, err := processtest.Shell(c.Start, "exit "+strconv.Itoa(i), nil)
				if err != nil {
					t.Error(err)
					return
				}
				<-ch.Exited
				if got := ch.Status.ExitStatus(); got != i {
					t.Errorf("ended with code %d, want %d", got, i)
				}
			})
		}
		wg.Wait()
		childless(t, c)
	})
	t.Run("batch", func(t *testing.T) {
		c := processtest.New(t)
		var all []*process.Child
		if !c.Batch(func(start process.Starter) {
			for range 10 {
				ch, err := processtest.Shell(start, "exit 7", nil)
				if err != nil {
					t.Error(err)
					return
				}
				all = append(all, ch)
			}
		}) {
			t.Fatal("the batch was refused")
		}
		for _, ch := range all {
			if <-ch.Exited; ch.Status.ExitStatus() != 7 {
				t.Errorf("ended with %#x, want code 7", uint32(ch.Status))
			}
		}
	})
	t.Run("missing program", func(t *testing.T) {
		c := processtest.New(t)
		ch, err := c.Start("/no/such/program", []string{"x"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{}})
		if ch != nil || !errors.Is(err, unix.ENOENT) {
			t.Errorf("got %+v, %v; want no such file", ch, err)
		}
		childless(t, c) // a program that could not be started is no child
	})
	t.Run("after the end", func(t *testing.T) {
		c, err := process.NewChildren()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if ch, err := c.Start("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{}}); ch != nil || err == nil {
			t.Errorf("got %+v, %v; want a refusal", ch, err)
		}
		if c.Batch(func(process.Starter) { t.Error("the batch was run") }) {
			t.Error("the batch was taken")
		}
	})
	t.Run("adopted orphans", func(t *testing.T) {
		c := processtest.New(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		// The child starts a daemon, which is in a session of its own and whose parent has ended.
		ch := mustShell(t, c, "setsid sleep 1000 >/dev/null & echo $!", w)
		_ = w.Close()
		<-ch.Exited
		if empty, _ := c.Empty(); empty {
			t.Fatal("there is no child, while the orphan runs")
		}
		var pid int
		if _, err := fmt.Fscan(r, &pid); err != nil {
			t.Fatal(err)
		}
		orphan, ok := process.Read(pid)
		if !ok || orphan.Parent != os.Getpid() {
			t.Fatalf("the orphan is %+v, %t; want a child of %d", orphan, ok, os.Getpid())
		}
		later := orphan
		later.Start++
		later.Signal(unix.SIGKILL) // must not hit a later process with the same PID
		if p, ok := process.Read(pid); !ok || p.Zombie {
			t.Fatal("a signal for another process has ended the orphan")
		}
		found := false
		for _, p := range process.Descendants(os.Getpid()) {
			found = found || p == orphan
		}
		if !found {
			t.Error("the orphan is not among the descendants")
		}
		orphan.Signal(unix.SIGKILL)
		childless(t, c)
		if _, ok := process.Read(pid); ok {
			t.Error("the orphan was not reaped")
		}
	})
	t.Run("signal", func(t *testing.T) {
		c := processtest.New(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		// The signal must reach the whole process group.
		ch := mustShell(t, c, "sleep 1000 & echo ready; wait", w)
		_ = w.Close()
		if _, err := r.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		// This child had the same PID earlier, and was reaped.
		reaped := &process.Child{PID: ch.PID, Exited: make(chan struct{})}
		c.Signal(reaped, unix.SIGKILL)
		c.Signal(ch, unix.SIGTERM)
		<-ch.Exited
		if !ch.Status.Signaled() || ch.Status.Signal() != syscall.SIGTERM {
			t.Errorf("ended with %#x, want by the SIGTERM that was meant for it", uint32(ch.Status))
		}
		childless(t, c)
		c.Signal(ch, unix.SIGKILL) // must not fail although the process is gone
	})
	t.Run("the thread that asked ends", func(t *testing.T) {
		c := processtest.New(t)
		var ch *process.Child
		var err error
		thread := onThread(func() { ch, err = processtest.Shell(c.Start, "sleep 1000", nil) })
		if err != nil {
			t.Fatal(err)
		}
		for begun, gone := time.Now(), false; !gone; runtime.Gosched() {
			if time.Since(begun) > time.Minute {
				t.Fatal("the thread does not end")
			}
			_, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread))
			gone = err != nil
		}
		c.Signal(ch, unix.SIGTERM)
		if <-ch.Exited; ch.Status.Signal() != syscall.SIGTERM {
			t.Errorf("ended with %#x: the end of a thread has ended it", uint32(ch.Status))
		}
	})
}

func TestHelper(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	c := processtest.New(t)
	sh := func(ctx context.Context, script string, stdin []byte) ([]byte, error) {
		return c.RunHelper(ctx, "/bin/sh", []string{"sh", "-c", script}, "/", append(os.Environ(), "WORD=said"), stdin, false)
	}
	for _, c := range []struct{ name, script, stdin, want, err string }{
		{"output", "echo $WORD; pwd; echo not this >&2", "", "said\n/\n", ""},
		{"input", "cat; cat", "a\nb", "a\nb", ""},
		{"large input", "wc -c", strings.Repeat("x", 1<<20), "1048576\n", ""},
		{"no input", "cat", "", "", ""},
		{"code", "echo before; exit 3", "", "before\n", "/bin/sh: ended with status 0x300"},
		{"signal", "kill -KILL $$", "", "", "/bin/sh: ended with status 0x9"},
		{"held open", "sleep 1000 & echo mine", "", "mine\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := sh(t.Context(), c.script, []byte(c.stdin))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if string(out) != c.want || text != c.err {
				t.Errorf("got %q, %q; want %q, %q", out, text, c.want, c.err)
			}
		})
	}
	t.Run("more than is wanted", func(t *testing.T) {
		out, err := sh(t.Context(), "head -c 3000000 /dev/zero", nil)
		if err != nil || !bytes.Equal(out, make([]byte, process.HelperBytes)) {
			t.Errorf("got %d bytes, %v; want the first %d", len(out), err, process.HelperBytes)
		}
	})
	t.Run("both streams", func(t *testing.T) {
		out, err := c.RunHelper(t.Context(), "/bin/sh", []string{"sh", "-c", "echo one; echo two >&2; echo three; exit 1"}, "/", os.Environ(), nil, true)
		if string(out) != "one\ntwo\nthree\n" || err == nil {
			t.Errorf("got %q, %v; want both and that it failed", out, err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		if out, err := c.RunHelper(t.Context(), "/no/such/program", []string{"x"}, "/", nil, nil, false); !errors.Is(err, unix.ENOENT) || out != nil {
			t.Errorf("got %q, %v; want no such file", out, err)
		}
	})
}

// onThread calls f on a thread of its own, which then ends. It returns the ID of the thread.
func onThread(f func()) (thread int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // if a goroutine ends while it is locked to a thread, the thread ends, too
		if thread = unix.Gettid(); thread != os.Getpid() {
			f()
			return
		}
		thread = onThread(f) // the first thread of a process never ends, and is not free meanwhile
		runtime.UnlockOSThread()
	}()
	<-done
	return thread
}

// untilOpened returns a FIFO, and a context that ends when a process has opened the FIFO. When the process has closed
// the FIFO again, running gets the error of the reader.
func untilOpened(t *testing.T) (ctx context.Context, fifo string, running <-chan error) {
	t.Helper()
	fifo = filepath.Join(t.TempDir(), "running")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(fifo)
		cancel()
		read <- err
	}()
	return ctx, fifo, read
}

// TestHelperOutOfTime checks that a helper that takes too long is killed, with the processes that it has started.
func TestHelperOutOfTime(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	c := processtest.New(t)
	ctx, fifo, running := untilOpened(t)
	out, err := c.RunHelper(ctx, "/bin/sh", []string{"sh", "-c", "trap '' TERM; echo said; sleep 1000 & echo >" + fifo + "; while :; do sleep 1000; done"}, "/", os.Environ(), nil, false)
	if string(out) != "said\n" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v; want what it said, and that it was cancelled", out, err)
	}
	if err := <-running; err != nil {
		t.Error(err)
	}
	childless(t, c)
}

// TestHelperUnkillable checks that RunHelper does not wait for a process that cannot be killed, as one that hangs in
// the kernel. Here, the process has moved to another process group, which the signal does not reach.
func TestHelperUnkillable(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	c := processtest.New(t)
	ctx, fifo, running := untilOpened(t)
	const script = `import os, sys, time
os.setpgid(0, os.getpgid(os.getppid()))
open(sys.argv[1], "w").close()
time.sleep(1000)`
	_, err := c.RunHelper(ctx, "/usr/bin/python3", []string{"python3", "-c", script, fifo}, "/", os.Environ(), nil, false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if err := <-running; err != nil {
		t.Error(err)
	}
	if empty, _ := c.Empty(); empty {
		t.Error("the helper has ended: the test shows nothing")
	}
	c.KillAll(nil)
}
