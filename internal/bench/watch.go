package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// watchTime is how long the gang works in a run of watchCost, in seconds.
const watchTime = "10"

// watchCost reads the CPU time of gangrun's processes at ownBegin and at ownEnd after the start of a run. At ownBegin,
// the start of the gang is over. At ownEnd, the end of the gang has not begun.
const (
	ownBegin = 3 * time.Second
	ownEnd   = 9 * time.Second
)

// watchCost compares the speed of ranks with --watch on and off, in alternating runs. The ranks do training steps of
// PyTorch, or rounds of an MPI allreduce. watchCost also prints the CPU time of gangrun itself, which varies far less
// than the speed of the ranks.
func watchCost(ctx context.Context, gangrun string, runs int, g gangs) error {
	dir, err := os.MkdirTemp("", "gangrun-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("work of 2 ranks for %s s or more, with --watch on and off, %d alternating runs; gangrun's own CPU time in a second\n", watchTime, runs)
	commands := map[string][]string{
		"digits": {"/usr/bin/python3", "examples/digits/train.py", "--epochs=300", "--checkpoint-every=1000000"},
	}
	order := []string{"digits"}
	for _, mpi := range g.mpis {
		program := filepath.Join(dir, "busy."+mpi)
		if out, err := exec.CommandContext(ctx, "mpicc."+mpi, "-O2", "-o", program, "internal/bench/testdata/busy.c").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		commands[mpi], order = []string{program, watchTime}, append(order, mpi)
	}
	for _, name := range order {
		var each, own = map[string]sample{}, map[string]sample{}
		for i := range runs {
			for j := range 2 {
				mode := []string{"on", "off"}[(i+j)%2]
				round, cpu, err := workOf(ctx, gangrun, mode, commands[name])
				if err != nil {
					return err
				}
				each[mode], own[mode] = append(each[mode], round), append(own[mode], cpu)
			}
		}
		r := ratioOf(each["on"], each["off"])
		on, off := own["on"].median(), own["off"].median()
		fmt.Printf("  %-8s time of a round, on/off: %.4f (%.4f to %.4f)  own CPU time: on %.1f ms, off %.1f ms; the watch takes %.2f %% of the cores\n",
			name, r.of, r.low, r.high, milliseconds(on), milliseconds(off), 100*(on-off).Seconds()/float64(runtime.NumCPU()))
	}
	return nil
}

// workOf runs two ranks. It returns the mean time of a round, or of a training step with PyTorch, and the CPU time
// that gangrun's own processes use per second.
func workOf(ctx context.Context, gangrun, mode string, command []string) (round, own time.Duration, err error) {
	cmd, done := limited(ctx, append([]string{gangrun, "run", "--preflight", "off", "--retries", "0", "--watch", mode, "-n", "2", "--"}, command...)...)
	defer done()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan struct{})
	measured := make(chan time.Duration, 1) // closed without a value if the command has ended too early
	go func() {
		defer close(measured)
		var begin, used time.Duration
		for _, wait := range []time.Duration{ownBegin, ownEnd - ownBegin} {
			select {
			case <-time.After(wait):
			case <-ended:
				return
			}
			now := cpuTime(gangrun)
			begin, used = now, now-begin
		}
		measured <- time.Duration(float64(used) / (ownEnd - ownBegin).Seconds())
	}()
	var first time.Time // when the line of step begun was printed
	var begun int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if _, number, found := strings.Cut(line, "rounds "); found {
			rounds, _ := strconv.ParseFloat(strings.TrimSpace(number), 64)
			seconds, _ := strconv.ParseFloat(watchTime, 64)
			round = time.Duration(seconds / max(rounds, 1) * float64(time.Second))
			continue
		}
		var step, total int
		if n, _ := fmt.Sscanf(line[max(strings.Index(line, "step "), 0):], "step %d/%d", &step, &total); n < 2 {
			continue
		}
		if first.IsZero() {
			first, begun = time.Now(), step
		} else {
			round = time.Since(first) / time.Duration(max(step-begun, 1))
		}
	}
	err = cmd.Wait()
	close(ended)
	own, ok := <-measured
	if err != nil {
		return 0, 0, fmt.Errorf("%v: %w", command, err)
	}
	if !ok {
		return 0, 0, fmt.Errorf("%v has ended within %v: give it more work", command, ownEnd)
	}
	if round == 0 {
		return 0, 0, fmt.Errorf("%v has not said how many rounds it has done", command)
	}
	return round, own, nil
}

// cpuTime returns the total CPU time of the living processes that run a program.
func cpuTime(program string) (sum time.Duration) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if path, err := os.Readlink(link); err != nil || path != program {
			continue
		}
		threads, _ := filepath.Glob(filepath.Join(filepath.Dir(link), "task", "*", "schedstat"))
		for _, path := range threads {
			data, _ := os.ReadFile(path)
			var ns int64
			_, _ = fmt.Sscan(string(data), &ns)
			sum += time.Duration(ns)
		}
	}
	return sum
}
