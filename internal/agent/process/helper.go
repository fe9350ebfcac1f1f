package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/topology/probe"
)

// Limits of a helper process.
const (
	helperTime  = 10 * time.Second
	helperBytes = 1 << 20
	// killWait is how long RunHelper waits for the end of a helper that it has killed.
	killWait = time.Second
)

// RunHelper runs a helper program to its end, with stdin as its input. It returns the beginning of the
// program's standard output and, if both is true, of its standard error. If the exit code is not 0, RunHelper
// returns an error, together with the output. If ctx ends, or if the helper takes too long, RunHelper kills the
// helper. It returns soon after that, even if the helper hangs in the kernel, where no signal ends it.
func (c *Children) RunHelper(ctx context.Context, path string, argv []string, dir string, env []string, stdin []byte, both bool) (out []byte, err error) {
	return c.RunHelperFor(ctx, helperTime, path, argv, dir, env, stdin, both)
}

// RunHelperFor is like RunHelper, but with limit as the time limit of the helper.
func (c *Children) RunHelperFor(ctx context.Context, limit time.Duration, path string, argv []string, dir string, env []string, stdin []byte, both bool) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	in, err := memFile(stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	null, err := DevNull()
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	errs := null
	if both {
		errs = w
	}
	ch, err := c.Start(path, argv, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{in.Fd(), w.Fd(), errs.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = w.Close()
	if err != nil {
		return nil, err
	}
	read := make(chan error, 1)
	go func() {
		said := probe.Outlet(r)
		var err error
		if out, err = io.ReadAll(io.LimitReader(said, helperBytes)); err == nil {
			_, err = io.Copy(io.Discard, said) // otherwise the helper would wait
		}
		read <- err
	}()
	select {
	case <-ch.Exited:
	case <-ctx.Done():
		c.Signal(ch, unix.SIGKILL)
		limit := time.NewTimer(killWait)
		defer limit.Stop()
		select {
		case <-ch.Exited:
		case <-limit.C:
		}
	}
	// A process that the helper left behind may hold the pipe open. The deadline ends the reading when the pipe is
	// empty.
	_ = r.SetReadDeadline(time.Unix(1, 0))
	if err := <-read; err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if ch.Status.Signaled() || ch.Status.ExitStatus() != 0 {
		return out, fmt.Errorf("%s: ended with status %#x", path, uint32(ch.Status))
	}
	return out, nil
}

// memFile returns a file in memory that has data. Its offset is at the beginning.
func memFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "stdin")
	if _, err := f.WriteAt(data, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
