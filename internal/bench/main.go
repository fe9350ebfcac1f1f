// Command bench compares gangrun with other launchers in alternating runs, and prints the ratios of
// medians with their spread. "make bench" runs it. No test depends on it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "floor" {
		os.Exit(floor(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == insideName {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := inside(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	gangrun := flag.String("gangrun", "bin/gangrun", "the `binary` to measure")
	runs := flag.Int("runs", 15, "how many alternating runs")
	megabytes := flag.Int("mb", 2000, "how much output the output benchmark writes, in MB")
	only := flag.String("only", strings.Join(parts, ","), "which `parts` to run")
	mpis := flag.String("mpi", "mpich,openmpi", "the `MPIs` of the MPI benchmarks")
	ranks := flag.String("ranks", "2,8,32", "the `numbers` of ranks of the MPI benchmarks")
	bed := flag.String("bed", "bin/hosts", "the `binary` that simulates hosts")
	hosts := flag.String("hosts", "1,2,4", "the `numbers` of hosts of the MPI benchmarks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	g, err := parseGangs(*mpis, *ranks, *hosts)
	if err == nil {
		err = bench(ctx, *gangrun, *bed, *runs, *megabytes, strings.Split(*only, ","), g)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parts has the names of the benchmarks, in the order in which they run.
var parts = []string{"launch", "trial", "mpi", "death", "mpi-death", "output", "ssh", "slurm", "containers", "scale", "watch", "diagnose"}

func bench(ctx context.Context, gangrun, bed string, runs, megabytes int, only []string, g gangs) error {
	for _, part := range only {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("there is no part %q: take some of %s", part, strings.Join(parts, ","))
		}
	}
	if runs < 1 {
		return fmt.Errorf("-runs is %d: at least 1 is needed", runs)
	}
	gangrun, err := filepath.Abs(gangrun)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "gangrun-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	if err := os.Setenv("GANGRUN_HOME", home); err != nil {
		return err
	}
	run := map[string]func() error{
		"watch":     func() error { return watchCost(ctx, gangrun, runs, g) },
		"diagnose":  func() error { return diagnose(ctx, gangrun, (runs+2)/3, 300) },
		"launch":    func() error { return launch(ctx, gangrun, runs) },
		"trial":     func() error { return trial(ctx, gangrun, runs) },
		"mpi":       func() error { return mpiJobs(ctx, gangrun, runs, g) },
		"death":     func() error { return death(ctx, gangrun, runs) },
		"mpi-death": func() error { return mpiDeath(ctx, gangrun, runs, g) },
		"output":    func() error { return output(ctx, gangrun, megabytes) },
		"ssh":       func() error { return inBed(ctx, bed, gangrun, "ssh", (runs+1)/2) },
		"slurm":     func() error { return slurm(ctx, bed, gangrun, (runs+1)/2) },
		"containers": func() error {
			return inBed(ctx, bed, gangrun, "containers", (runs+1)/2, "-containerd", "-n", strconv.Itoa(slices.Max(imageHosts)))
		},
		"scale": func() error {
			if err := scaleLoopback(ctx, gangrun, (runs+4)/5); err != nil {
				return err
			}
			return inBed(ctx, bed, gangrun, "scale", (runs+4)/5)
		},
	}
	for _, part := range parts {
		if !slices.Contains(only, part) {
			continue
		}
		if err := run[part](); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// floor starts n processes that run true, and waits for all of them. No launcher can do less.
func floor(n string) int {
	count, err := strconv.Atoi(n)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	var pids []int
	for range count {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{
			Env: os.Environ(), Files: []uintptr{null.Fd(), null.Fd(), null.Fd()},
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
	}
	return 0
}

// sample has the times of one contender.
type sample []time.Duration

func (s sample) median() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// spread returns the limits between which the middle half of the times lies.
func (s sample) spread() (low, high time.Duration) {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/4], sorted[len(sorted)*3/4]
}

func (s sample) String() string {
	low, high := s.spread()
	return fmt.Sprintf("%8.1f ms (%.1f to %.1f)", milliseconds(s.median()), milliseconds(low), milliseconds(high))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
