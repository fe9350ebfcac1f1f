package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cost is what a gang with one rank on each host costs its controller.
type cost struct {
	up   time.Duration // time until every rank runs
	cpu  time.Duration // CPU time of the controller until every rank runs
	idle time.Duration // CPU time of the controller during watched, while the ranks do nothing
	end  time.Duration // time from SIGTERM to the end of the controller
	peak int64         // the most memory that the controller used, in bytes
}

// watched is how long oneCost watches a gang after every rank runs.
const watched = 3 * time.Second

// scaleLoopback measures gangs on simulated hosts of this machine.
func scaleLoopback(ctx context.Context, gangrun string, runs int) error {
	if err := adopt(); err != nil {
		return err
	}
	fmt.Printf("the controller of a gang of one rank a host, each with an agent of its own: medians of %d runs\n  %s\n", runs, conditions())
	return scale(ctx, "simulated hosts", runs, []int{1, 16, 32, 64}, func(hosts int) []string {
		return []string{gangrun, "run", "--loopback", strconv.Itoa(hosts)}
	})
}

// scaleOverSSH measures gangs on hosts that SSH reaches.
func scaleOverSSH(ctx context.Context, gangrun string, runs int) error {
	return scale(ctx, "hosts over SSH", runs, []int{1, 4, 8, bedHosts}, func(hosts int) []string {
		return []string{gangrun, "run", "--hosts", strings.Join(bedNames(hosts), ",")}
	})
}

func scale(ctx context.Context, what string, runs int, sizes []int, command func(hosts int) []string) error {
	var costs []cost
	for _, hosts := range sizes {
		var all []cost
		for range runs {
			c, err := oneCost(ctx, hosts, command(hosts))
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		c := medians(all)
		costs = append(costs, c)
		fmt.Printf("  %-15s %3d: all run after %5d ms, CPU till then %4d ms, while they run %5.2f %% of a core, at most %3d MB, ended in %4d ms\n",
			what, hosts, c.up.Milliseconds(), c.cpu.Milliseconds(), 100*c.idle.Seconds()/watched.Seconds(), c.peak>>20, c.end.Milliseconds())
	}
	first, last := costs[0], costs[len(costs)-1]
	more := sizes[len(sizes)-1] - sizes[0]
	per := func(a, b time.Duration) float64 { return float64((b - a).Microseconds()) / 1000 / float64(more) }
	fmt.Printf("  %-15s each more: %.1f ms, CPU %.2f ms, %.3f %% of a core, %d kB, ended in %.2f ms\n", what, per(first.up, last.up), per(first.cpu, last.cpu),
		per(first.idle, last.idle)/10/watched.Seconds(), (last.peak-first.peak)>>10/int64(more), per(first.end, last.end))
	return nil
}

// medians returns the median of each cost.
func medians(all []cost) (m cost) {
	for _, part := range []func(*cost) *time.Duration{
		func(c *cost) *time.Duration { return &c.up }, func(c *cost) *time.Duration { return &c.cpu },
		func(c *cost) *time.Duration { return &c.idle }, func(c *cost) *time.Duration { return &c.end },
	} {
		var s sample
		for i := range all {
			s = append(s, *part(&all[i]))
		}
		*part(&m) = s.median()
	}
	var peaks []int64
	for _, c := range all {
		peaks = append(peaks, c.peak)
	}
	slices.Sort(peaks)
	m.peak = peaks[len(peaks)/2]
	return m
}

// oneCost runs a gang, watches it for the time watched, and ends it.
func oneCost(ctx context.Context, hosts int, command []string) (c cost, err error) {
	work, err := os.Getwd() // if there are several hosts, they share this directory
	if err != nil {
		return c, err
	}
	dir, err := os.MkdirTemp(work, "scale-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return c, err
	}
	defer log.Close()
	cmd, done := limited(ctx, slices.Concat(command, []string{"--preflight", "off", "--retries", "0", "--mpi", "none", "--workdir", dir, "-n", strconv.Itoa(hosts), "--",
		"sh", "-c", `echo $$ > pid.$RANK && mv pid.$RANK rank.$RANK; exec sleep 600`})...)
	defer done()
	cmd.Stdout, cmd.Stderr = log, log
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	err = func() error {
		if _, err := waitRanks(ctx, dir, hosts); err != nil {
			return err
		}
		c.up = time.Since(begun)
		if c.cpu, _, err = used(cmd.Process.Pid); err != nil {
			return err
		}
		select {
		case <-time.After(watched):
		case <-ctx.Done():
			return ctx.Err()
		}
		cpu, peak, err := used(cmd.Process.Pid)
		c.idle, c.peak = cpu-c.cpu, peak
		return err
	}()
	told := time.Now()
	err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
	var code *exec.ExitError
	if wait := cmd.Wait(); !errors.As(wait, &code) || code.ExitCode() != 128+int(syscall.SIGTERM) {
		said, _ := os.ReadFile(log.Name())
		err = errors.Join(err, fmt.Errorf("%v: %v, want code 143\n%s", cmd.Args, wait, said))
	}
	c.end = time.Since(told)
	return c, errors.Join(err, settle(ctx))
}

// tick is the unit of the times in /proc/PID/stat. It is 1/100 s on every Linux system on which Go runs.
const tick = 10 * time.Millisecond

// used returns the CPU time that a process has used, without that of its children, and the most memory that it had.
func used(pid int) (cpu time.Duration, peak int64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the fields from the third on
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("/proc/%d/stat is %q", pid, stat)
	}
	user, err1 := strconv.Atoi(string(fields[11]))
	system, err2 := strconv.Atoi(string(fields[12]))
	status, err3 := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, ok := bytes.Cut(status, []byte("VmHWM:"))
	if err := errors.Join(err1, err2, err3); err != nil || !ok {
		return 0, 0, errors.Join(err, fmt.Errorf("/proc/%d/status has no VmHWM", pid))
	}
	_, err = fmt.Sscan(string(after), &peak)
	return time.Duration(user+system) * tick, peak << 10, err
}
