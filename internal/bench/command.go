package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	limit  = time.Minute      // of one command
	parted = 10 * time.Second // of what a command leaves behind
)

// limited returns a command that leads a process group. At the limit, and when
// ctx ends, the group gets SIGTERM; done, after Wait, kills what then remains.
func limited(ctx context.Context, argv ...string) (cmd *exec.Cmd, done func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %v", limit))
	cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	ended := false
	cmd.Cancel = func() error {
		ended = true
		return errors.Join(context.Cause(ctx), syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM))
	}
	return cmd, func() {
		cancel()
		if ended {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}

// wholeJob runs a command, which must succeed, and measures the time until the command has been
// reaped. A process that the command leaves behind and that holds its output open does not count.
// The output goes to a file in dir. wholeJob returns when everything that the command has left
// behind has ended, too, so that the next run is not disturbed.
func wholeJob(ctx context.Context, dir string, argv ...string) (time.Duration, error) {
	path := filepath.Join(dir, "output")
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	cmd, done := limited(ctx, argv...)
	defer done()
	cmd.Stdout, cmd.Stderr = file, file
	begin := time.Now()
	err = cmd.Run()
	took := time.Since(begin)
	if err != nil {
		said, _ := os.ReadFile(path)
		return 0, fmt.Errorf("%v: %w\n%s", argv, err, said)
	}
	if err := settle(ctx); err != nil {
		return 0, fmt.Errorf("%v: %w", argv, err)
	}
	return took, nil
}

// adopt makes this process the parent of orphans among its descendants, so that settle can
// wait for them.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// settle waits until this process has no child left.
func settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, parted)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		switch pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.ECHILD):
			return nil
		case err != nil && !errors.Is(err, syscall.EINTR):
			return err
		case pid > 0:
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("it left processes behind that were there %v later: %w", parted, ctx.Err())
		}
	}
}
