// Command failures runs the jobs of examples/failures under gangrun and under mpirun in a shell
// loop, and prints what gangrun made of each and how much time of GPUs both have wasted. "make
// failures" runs it. It ends with exit code 1 if gangrun was wrong about a job, or wasted too much.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// examples is the directory of the jobs, in the tree of gangrun.
const examples = "examples/failures"

// config has the values of the flags.
type config struct {
	root    string        // root directory of the tree of gangrun
	gangrun string        // path of the binary
	longest time.Duration // the job that runs for the longest time fails after this time
	only    []string      // the names of jobs; empty for all
	page    string        // the page to write; empty for none
	verbose bool          // print the output of gangrun and the loop
}

func main() {
	var c config
	var only string
	flag.StringVar(&c.gangrun, "gangrun", "bin/gangrun", "the `binary` to run")
	flag.DurationVar(&c.longest, "longest", 111*time.Second, "the `time` after which the job fails that runs for longest; the others fail earlier, as in the study")
	flag.StringVar(&only, "only", "", "the `jobs` to run, with commas between them (default: all)")
	flag.StringVar(&c.page, "page", "", "also write the table into this `file`")
	flag.BoolVar(&c.verbose, "v", false, "also print what gangrun and the loop have printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if only != "" {
		c.only = strings.Split(only, ",")
	}
	if err := c.main(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "failures:", err)
		os.Exit(1)
	}
}

// main runs the jobs, prints the table to out and the progress to log.
func (c config) main(ctx context.Context, out, log io.Writer) error {
	chosen, err := choose(c.only)
	if err != nil {
		return err
	}
	if c.page != "" && len(chosen) < len(reasons) {
		return errors.New("-page needs all jobs: leave out -only")
	}
	if c.gangrun, err = filepath.Abs(c.gangrun); err != nil {
		return err
	}
	rows, err := c.runAll(ctx, chosen, log)
	if err != nil {
		return err
	}
	fmt.Fprint(out, text(rows))
	if c.page != "" {
		if err := os.WriteFile(c.page, []byte(page(rows, c.longest)), 0o644); err != nil {
			return err
		}
	}
	return check(rows)
}

// choose returns the reasons of the named jobs. Without names, it returns all reasons.
func choose(only []string) ([]reason, error) {
	if len(only) == 0 {
		return reasons, nil
	}
	var chosen []reason
	for _, name := range only {
		i := slices.IndexFunc(reasons, func(r reason) bool { return r.job == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no job %q in %s", name, examples)
		}
		chosen = append(chosen, reasons[i])
	}
	return chosen, nil
}

// check returns an error that says what gangrun has done wrong.
func check(rows []row) error {
	var errs []error
	for _, r := range rows {
		if wrong := r.verdict.wrong(r.reason); wrong != "" {
			errs = append(errs, fmt.Errorf("%s: %s", r.job, wrong))
		}
	}
	if t := sum(rows); t.gangrun > mostWasted*t.loop {
		errs = append(errs, fmt.Errorf("gangrun wasted %.1f rank-seconds, more than %.0f %% of the loop's %.1f", t.gangrun, 100*mostWasted, t.loop))
	}
	return errors.Join(errs...)
}
