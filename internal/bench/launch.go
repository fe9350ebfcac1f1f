package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// launch measures whole jobs that run true, in alternating runs. The floor (see function floor) is among the
// contenders.
func launch(ctx context.Context, gangrun string, runs int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("whole job of N x true, one host, median and middle half of %d alternating runs\n", runs)
	fmt.Printf("  floor:   bench floor N (fork, exec and wait, nothing else)\n")
	fmt.Printf("  gangrun: gangrun run --preflight off -n N -- true\n")
	for _, n := range []int{2, 4, 8, 16, 32, 64} {
		var floors, gangs sample
		for range runs {
			f, err := timed(limited(ctx, self, "floor", strconv.Itoa(n)))
			if err != nil {
				return err
			}
			g, err := timed(limited(ctx, gangrun, "run", "--preflight", "off", "-n", strconv.Itoa(n), "--", "true"))
			if err != nil {
				return err
			}
			floors, gangs = append(floors, f), append(gangs, g)
		}
		fmt.Printf("  N=%-3d floor %v   gangrun %v   ratio %.2f\n", n, floors, gangs, float64(gangs.median())/float64(floors.median()))
	}
	return nil
}

// timed runs a command, which must succeed, and then calls done. It returns the time that the command took.
func timed(cmd *exec.Cmd, done func()) (time.Duration, error) {
	defer done()
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begin)
	if err != nil {
		return 0, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return took, nil
}
