package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/runclock"
)

// Limits on a child, apart from its time limit.
const (
	maxOutput  = 16 << 20               // bytes of output; on a host with 16 GPUs, there is less than 1 MiB
	killTime   = 2 * time.Second        // time after SIGKILL until gangrun gives up on the child
	drainTime  = 500 * time.Millisecond // time for reading the output after the child has ended
	firstPause = time.Millisecond       // the first pause between two checks whether the child has ended
	lastPause  = 20 * time.Millisecond  // the longest of these pauses, which get longer
)

// Output is the result of a child process.
type Output struct {
	Stdout, Stderr []byte
	Code           int  // its exit code, or 128 plus the number of the signal that ended the process
	Signalled      bool // a signal ended it
	PID            int
	Hung           bool // the process did not end in time and was killed
	Stuck          bool // SIGKILL did not end the process: it hangs in the kernel and still exists
	Cut            bool // the process printed more than Stdout and Stderr have
}

// Runner runs a program without input. If limit passes or ctx is done before the program ends,
// the Runner kills it, and waits only a short time for its end. The error is that of ctx, or
// reports that the program could not be started.
type Runner func(ctx context.Context, limit time.Duration, path string, args ...string) (Output, error)

// Run is the Runner for programs that do not reap all of their child processes.
func Run(ctx context.Context, limit time.Duration, path string, args ...string) (Output, error) {
	return run(ctx, kill, limit, path, args)
}

// kill kills a child, and the processes in its process group.
func kill(pid int) {
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = unix.Kill(pid, unix.SIGKILL)
}

func run(ctx context.Context, kill func(pid int), limit time.Duration, path string, args []string) (Output, error) {
	if err := ctx.Err(); err != nil {
		return Output{}, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return Output{}, err
	}
	defer null.Close()
	stdout, err := newPipe()
	if err != nil {
		return Output{}, err
	}
	stderr, err := newPipe()
	if err != nil {
		stdout.abandon()
		return Output{}, err
	}
	// PDEATHSIG ends the child with the thread that forked it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Files: []*os.File{null, stdout.w, stderr.w},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		stdout.abandon()
		stderr.abandon()
		return Output{}, err
	}
	out := Output{PID: p.Pid}
	_ = p.Release() // from here on, only this function waits for the child, without blocking
	stdout.start()
	stderr.start()

	ended, err := wait(ctx, out.PID, limit)
	out.Hung = err == nil && !ended
	// Its descendants must not outlive it or keep its output open. The PID is still valid,
	// because it has not been waited for.
	kill(out.PID)
	if out.Hung {
		ended, err = wait(context.WithoutCancel(ctx), out.PID, killTime)
		out.Stuck = err == nil && !ended
	}
	var status unix.WaitStatus
	if ended {
		_, err = unix.Wait4(out.PID, &status, 0, nil)
	}
	deadline := time.Now().Add(drainTime)
	out.Stdout, out.Cut = stdout.finish(deadline)
	var cut bool
	out.Stderr, cut = stderr.finish(deadline)
	out.Cut = out.Cut || cut
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil {
		return out, err
	}
	if out.Code = status.ExitStatus(); status.Signaled() {
		out.Code, out.Signalled = 128+int(status.Signal()), true
	}
	return out, nil
}

// wait waits until the child has ended, this process has run for limit, or ctx is done. It reports
// whether the child has ended. It does not reap the child. It polls, because a blocking wait could
// not be cancelled.
func wait(ctx context.Context, pid int, limit time.Duration) (bool, error) {
	late := runclock.NewTimer(limit)
	defer late.Stop()
	pause := firstPause
	tick := time.NewTimer(pause)
	defer tick.Stop()
	for last := false; ; {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, fmt.Errorf("wait for pid %d: %w", pid, err)
		case info.Signo != 0:
			return true, nil
		case last:
			return false, nil
		}
		select {
		case <-tick.C:
			pause = min(2*pause, lastPause)
			tick.Reset(pause)
		case <-late.C:
			last = true
		case <-ctx.Done():
			last = true
		}
	}
}

// pipe collects what a child prints.
type pipe struct {
	r    *outlet
	w    *os.File
	data []byte
	cut  bool
	done chan struct{}
}

func newPipe() (*pipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &pipe{r: &outlet{file: r}, w: w, done: make(chan struct{})}, nil
}

func (p *pipe) abandon() {
	_ = p.r.Close()
	_ = p.w.Close()
}

func (p *pipe) start() {
	_ = p.w.Close()
	go func() {
		defer close(p.done)
		p.data, _ = io.ReadAll(io.LimitReader(p.r, maxOutput))
		n, _ := io.Copy(io.Discard, p.r) // otherwise the child would block
		p.cut = n > 0
	}()
}

// finish returns what was read until the end of the output, or until the deadline.
func (p *pipe) finish(deadline time.Time) ([]byte, bool) {
	_ = p.r.SetReadDeadline(deadline)
	<-p.done
	_ = p.r.Close()
	return p.data, p.cut
}
