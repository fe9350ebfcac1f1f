package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// trial measures how much time it costs to contain a trial, in alternating runs. Each pair of runs has an argument of
// its own, because gangrun does not repeat a trial that has passed.
func trial(ctx context.Context, gangrun string, runs int) error {
	dir, err := os.MkdirTemp("", "gangrun-bench-trial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("a trial of true, median and middle half of %d alternating runs\n", runs)
	fmt.Printf("  uncontained: gangrun preflight -n 2 --trial uncontained --workdir DIR -- true, DIR being empty\n")
	fmt.Printf("  contained:   the same with --trial on\n")
	var times [2]sample
	for run := range runs {
		for i, mode := range []string{"uncontained", "on"} {
			took, err := timed(limited(ctx, gangrun, "preflight", "-n", "2", "--trial", mode, "--workdir", dir, "--", "true", strconv.Itoa(run)))
			if err != nil {
				return err
			}
			times[i] = append(times[i], took)
		}
	}
	added := times[1].median() - times[0].median()
	fmt.Printf("  uncontained %v   contained %v   added %.1f ms\n", times[0], times[1], float64(added)/float64(time.Millisecond))
	return nil
}
