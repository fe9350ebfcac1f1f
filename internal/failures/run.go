package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
)

// late is the shortest time to failure with which a job counts as late.
const late = 3 * time.Second

// runAll runs the jobs. Jobs that fail late run beside the other jobs. The other jobs run one after the other.
func (c config) runAll(ctx context.Context, chosen []reason, log io.Writer) ([]row, error) {
	dir, err := os.MkdirTemp("", "gangrun-failures-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rows, errs := make([]row, len(chosen)), make([]error, len(chosen))
	var printing sync.Mutex
	one := func(i int) {
		if rows[i], errs[i] = c.run(ctx, chosen[i], dir); errs[i] != nil {
			cancel()
			return
		}
		printing.Lock()
		defer printing.Unlock()
		c.report(rows[i], log)
	}
	var all sync.WaitGroup
	for i, r := range chosen {
		if c.late(r) {
			all.Go(func() { one(i) })
		}
	}
	for i, r := range chosen {
		if !c.late(r) {
			one(i)
		}
	}
	all.Wait()
	if ctx.Err() == nil {
		return rows, nil
	}
	for i, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("%s: %w", chosen[i].job, err)
		}
	}
	return nil, ctx.Err()
}

// run runs a reason's job under each contender. If the job fails late, the contenders run at the same time. Otherwise,
// they run one after the other.
func (c config) run(ctx context.Context, r reason, dir string) (row, error) {
	result := row{reason: r}
	p, err := newPlace(dir, r)
	if err != nil {
		return result, err
	}
	command, err := c.command(r)
	if err != nil {
		return result, err
	}
	contenders := []func() error{
		func() (err error) { result.verdict, err = c.underGangrun(ctx, r, p); return err },
		func() (err error) { result.loop, err = c.underLoop(ctx, r, p, command, false); return err },
	}
	if r.saves {
		contenders = append(contenders, func() (err error) {
			result.resuming, err = c.underLoop(ctx, r, p, command, true)
			return err
		})
	}
	errs := make([]error, len(contenders))
	var all sync.WaitGroup
	for i, contender := range contenders {
		all.Go(func() { errs[i] = contender() })
		if !c.late(r) {
			all.Wait()
		}
	}
	all.Wait()
	if !r.saves {
		result.resuming = result.loop
	}
	return result, errors.Join(errs...)
}

// command returns the command of a reason's job file.
func (c config) command(r reason) ([]string, error) {
	path := filepath.Join(c.root, examples, r.job+".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := jobfile.Parse(path, data)
	if err != nil {
		return nil, err
	}
	var spec job.Spec
	file.Apply(&spec)
	return spec.Command, nil
}

// late reports whether a job runs for a long time before it fails. Such a job only sleeps, and so it can run beside
// other jobs.
func (c config) late(r reason) bool { return r.failAfter(c.longest) >= late }

// report prints how a job went.
func (c config) report(r row, log io.Writer) {
	wrong := r.verdict.wrong(r.reason)
	fmt.Fprintf(log, "%s: %s, caught by %s; the loop tried it %d times\n", r.job, r.verdict.category, r.verdict.by, r.loop.tried)
	if wrong != "" {
		fmt.Fprintf(log, "%s: wrong: %s\n", r.job, wrong)
	}
	if wrong != "" || c.verbose {
		fmt.Fprintf(log, "%s\n%s\n", r.verdict.log, r.loop.log)
	}
}
