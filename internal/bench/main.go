// Command bench measures gangrun beside what it is measured against, in
// alternating runs, and prints ratios of medians with their spread. "make
// bench" runs it; it decides nothing, and no test depends on it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "floor" {
		os.Exit(floor(os.Args[2]))
	}
	gangrun := flag.String("gangrun", "bin/gangrun", "the `binary` to measure")
	runs := flag.Int("runs", 15, "how many alternating runs")
	megabytes := flag.Int("mb", 2000, "how much output the output benchmark writes, in MB")
	flag.Parse()
	if err := bench(*gangrun, *runs, *megabytes); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(gangrun string, runs, megabytes int) error {
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
	for _, f := range []func() error{
		func() error { return launch(gangrun, runs) },
		func() error { return death(gangrun, runs) },
		func() error { return output(gangrun, megabytes) },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// floor starts n times true and waits for all: the least that any launcher
// must do.
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

// sample is the times of one contender.
type sample []time.Duration

func (s sample) median() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// spread is the range of the middle half.
func (s sample) spread() (low, high time.Duration) {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/4], sorted[len(sorted)*3/4]
}

func (s sample) String() string {
	low, high := s.spread()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%8.1f ms (%.1f to %.1f)", ms(s.median()), ms(low), ms(high))
}
