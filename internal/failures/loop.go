package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tries limits how often the loop starts a job.
const tries = 3

// loop says what the shell loop has done with a job.
type loop struct {
	tried    int
	recovers bool
	wasted   float64 // in rank-seconds
	log      string  // output of the loop
}

// underLoop runs a reason's job under mpirun in a shell loop. If resumes is true, each retry
// begins from the newest file in the directory of checkpoints.
func (c config) underLoop(ctx context.Context, r reason, p place, command []string, resumes bool) (loop, error) {
	contender := "loop"
	if resumes {
		contender = "resuming"
	}
	file := filepath.Join(p.dir, "tries-"+contender)
	dir, err := p.checkpoints(contender)
	if err != nil {
		return loop{}, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(examples, "loop.sh"), command...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), fmt.Sprintf("RANKS=%d", ranks), "TRIES="+file, "FAIL_AFTER="+seconds(r.failAfter(c.longest)),
		"GANGRUN_CHECKPOINT_DIR="+dir, "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1")
	if resumes {
		cmd.Env = append(cmd.Env, "RESUME=1")
	}
	// mpirun is a child of the shell, so both get the signal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return loop{}, err
	}
	if ctx.Err() != nil {
		return loop{}, ctx.Err()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return loop{}, fmt.Errorf("the loop did not try %s: %w\n%s", r.job, err, out.String())
	}
	l, err := readTries(string(text))
	l.log = out.String()
	return l, err
}

// readTries reads the lines that the loop prints about its tries. They say when each try began and ended, its exit
// code, and when the file was written from which the next try begins. If a job reaches its end, the work of a failed
// try before that file was written is not wasted.
func readTries(text string) (loop, error) {
	var l loop
	var kept float64
	for line := range strings.Lines(text) {
		var began, ended, saved float64
		var code int
		if _, err := fmt.Sscan(line, &began, &ended, &code, &saved); err != nil {
			return l, fmt.Errorf("the loop's line %q cannot be read: %w", line, err)
		}
		l.tried++
		l.recovers = code == 0
		if code != 0 {
			l.wasted += ranks * (ended - began)
			kept += ranks * max(0, min(saved, ended)-began)
		}
	}
	if l.recovers {
		l.wasted -= kept
	}
	return l, nil
}
