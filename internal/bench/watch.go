package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// watchTime is how long a gang works in a run of watchCost.
const watchTime = "10"

// watchCost compares the work that ranks do with the watch and without, in alternating runs: rounds of
// an allreduce of MPI, and training steps of Python. It also prints the CPU time of gangrun itself.
func watchCost(ctx context.Context, gangrun string, runs int, g gangs) error {
	dir, err := os.MkdirTemp("", "gangrun-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("work that ranks do in %s s, with --watch on and off, %d alternating runs\n", watchTime, runs)
	commands := map[string][]string{"python": {"python3", "internal/bench/testdata/train.py", watchTime}}
	order := []string{"python"}
	for _, mpi := range g.mpis {
		program := filepath.Join(dir, "busy."+mpi)
		if out, err := exec.CommandContext(ctx, "mpicc."+mpi, "-O2", "-o", program, "internal/bench/testdata/busy.c").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		commands[mpi], order = []string{program, watchTime}, append(order, mpi)
	}
	for _, name := range order {
		var with, without sample
		for i := range runs {
			for j := range 2 {
				mode := []string{"on", "off"}[(i+j)%2]
				rounds, err := workDone(ctx, gangrun, mode, commands[name])
				if err != nil {
					return err
				}
				each := time.Duration(float64(time.Hour) / rounds) // a time, so that ratios are of the same kind as elsewhere
				if mode == "on" {
					with = append(with, each)
				} else {
					without = append(without, each)
				}
			}
		}
		r := ratioOf(with, without)
		fmt.Printf("  %-8s time of a round, on/off: %.4f (%.4f to %.4f)\n", name, r.of, r.low, r.high)
	}
	return nil
}

// workDone runs two ranks, and returns how many rounds rank 0 has done.
func workDone(ctx context.Context, gangrun, mode string, command []string) (float64, error) {
	cmd, done := limited(ctx, append([]string{gangrun, "run", "--preflight", "off", "--retries", "0", "--watch", mode, "-n", "2", "--"}, command...)...)
	defer done()
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(out), "rounds ")
	number, _, _ := strings.Cut(rest, "\n")
	rounds, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || rounds <= 0 {
		return 0, fmt.Errorf("%v has not said how many rounds it has done: %q", command, out)
	}
	return rounds, nil
}
