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
	limit  = time.Minute      // the most time that a command, or the start of its ranks, may take
	parted = 10 * time.Second // the most time that the processes which a command leaves behind may take to end
)

// limited returns a command that leads a process group. When the command has run for the limit, or when ctx ends, the
// group gets SIGTERM. Call done after Wait. If the group got SIGTERM, done kills the processes of the group that are
// left.
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

// wholeJob runs a command, which must succeed, and returns the time until the command was reaped. wholeJob does not
// wait for processes that the command leaves behind before it stops the clock, even if they hold the output of the
// command open. The output goes to a file in dir. wholeJob returns when the processes that were left behind have
// ended, too, so that they do not disturb the next run.
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
