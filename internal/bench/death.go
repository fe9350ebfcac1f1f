package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// death measures the time from the SIGKILL of one rank to the end of all others. The ranks end at SIGTERM, so that the
// time is the time that gangrun takes.
func death(ctx context.Context, gangrun string, runs int) error {
	fmt.Printf("one rank of N killed (-9) until every rank is reaped, median and middle half of %d runs\n", runs)
	for _, n := range []int{2, 8, 32} {
		var took sample
		for range runs {
			d, err := oneDeath(ctx, gangrun, n, nil,
				"sh", "-c", `echo $$ > pid.$RANK && mv pid.$RANK rank.$RANK; exec sleep 600`)
			if err != nil {
				return err
			}
			took = append(took, d)
		}
		fmt.Printf("  N=%-3d %v\n", n, took)
	}
	return nil
}

// oneDeath kills one rank of a gang, which is not rank 0, and returns the time until the last rank has ended. Every
// rank R of the gang must write its PID to the file rank.R in its working directory.
func oneDeath(ctx context.Context, gangrun string, n int, flags []string, command ...string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "gangrun-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cmd, done := limited(ctx, slices.Concat([]string{gangrun, "run", "-o", "json", "--preflight", "off", "--retries", "0",
		"--workdir", dir, "-n", fmt.Sprint(n)}, flags, []string{"--"}, command)...)
	defer done()
	var report struct {
		Attempts []struct {
			Exits []struct {
				Time time.Time `json:"time"`
			} `json:"exits"`
		} `json:"attempts"`
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid, err := waitRanks(ctx, dir, n)
	if err != nil {
		return 0, errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	if err := json.NewDecoder(out).Decode(&report); err != nil {
		return 0, errors.Join(err, cmd.Wait())
	}
	var code *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &code) || code.ExitCode() != 128+9 {
		return 0, fmt.Errorf("%v: %v, want code 137", cmd.Args, err)
	}
	if len(report.Attempts) != 1 || len(report.Attempts[0].Exits) != n {
		return 0, fmt.Errorf("%v: the report is not of one attempt in which %d ranks ended", cmd.Args, n)
	}
	last := killed
	for _, e := range report.Attempts[0].Exits {
		if e.Time.After(last) {
			last = e.Time
		}
	}
	return last.Sub(killed), nil
}

// waitRanks waits until every rank runs, and returns the PID of a rank in the middle of the gang.
func waitRanks(ctx context.Context, dir string, n int) (pid int, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline) && ctx.Err() == nil; <-tick.C {
		up, err := filepath.Glob(filepath.Join(dir, "rank.*"))
		if err != nil {
			return 0, err
		}
		if len(up) == n {
			data, err := os.ReadFile(up[n/2])
			if err != nil {
				return 0, err
			}
			_, err = fmt.Sscan(string(data), &pid)
			return pid, err
		}
	}
	return 0, fmt.Errorf("the ranks did not come up within %v", limit)
}
