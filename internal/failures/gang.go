package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// ranks is the number of ranks of each job. The job files have this number, and the loop gets it.
const ranks = 4

// verdict says what gangrun has done with a job.
type verdict struct {
	category job.Category
	action   job.Action
	by       caught
	recovers bool
	wasted   float64 // in rank-seconds
	log      string  // output of gangrun
}

// wrong says what is wrong in the verdict. It returns "" if nothing is wrong.
func (v verdict) wrong(r reason) string {
	var what []string
	differ := func(name string, got, want any) {
		if got != want {
			what = append(what, fmt.Sprintf("%s %v, want %v", name, got, want))
		}
	}
	differ("category", v.category, r.category)
	differ("action", v.action, r.category.Action())
	differ("caught by", v.by, r.by)
	differ("recovers", v.recovers, r.recovers)
	return strings.Join(what, "; ")
}

// place is the place in which a job runs: a simulated host that no other run uses, and empty directories.
type place struct {
	dir       string // for all files of the job
	inventory string
}

// newPlace makes a place for a job below dir.
func newPlace(dir string, r reason) (place, error) {
	p := place{dir: filepath.Join(dir, r.job)}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return p, err
	}
	p.inventory = filepath.Join(p.dir, "gpus.yaml")
	host := fmt.Sprintf("hosts: [{name: %s-%d, gpus: %d}]\n", r.job, os.Getpid(), 2*ranks)
	return p, os.WriteFile(p.inventory, []byte(host), 0o644)
}

// checkpoints makes an empty directory for the checkpoints of one contender.
func (p place) checkpoints(contender string) (string, error) {
	dir := filepath.Join(p.dir, "checkpoints-"+contender)
	return dir, os.MkdirAll(dir, 0o755)
}

// underGangrun runs a reason's job under gangrun.
func (c config) underGangrun(ctx context.Context, r reason, p place) (verdict, error) {
	args := []string{"run", "-o", "json", "--inventory", p.inventory, "-e", "FAIL_AFTER=" + seconds(r.failAfter(c.longest))}
	if r.saves {
		dir, err := p.checkpoints("gangrun")
		if err != nil {
			return verdict{}, err
		}
		args = append(args, "--checkpoint-dir", dir)
	}
	cmd := exec.CommandContext(ctx, c.gangrun, append(args, filepath.Join(examples, r.job+".yaml"))...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "GANGRUN_HOME="+filepath.Join(p.dir, "home"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return verdict{}, err
	}
	if ctx.Err() != nil {
		return verdict{}, ctx.Err()
	}
	var report runreport.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return verdict{}, fmt.Errorf("gangrun's report on %s cannot be read: %w\n%s", r.job, err, log.String())
	}
	v := judge(report)
	v.log = log.String()
	return v, nil
}

// judge returns the verdict that a report shows.
func judge(report runreport.Report) verdict {
	v := verdict{recovers: report.State == job.StateSucceeded, by: gang}
	cause := report.Cause()
	for _, a := range slices.Backward(report.Attempts) {
		if cause = a.Cause; cause != nil {
			break
		}
	}
	if f := job.FirstError(report.Preflight); f != nil {
		v.by = static
		if strings.HasPrefix(f.Check, "trial") { // "trial" and "trial-ranks"
			v.by = trial
		}
	}
	if cause != nil {
		v.category, v.action = cause.Category, cause.Retry
		if v.action == "" {
			v.action = cause.Category.Action()
		}
	}
	v.wasted = wasted(report)
	return v
}

// wasted returns for how many rank-seconds ranks were held in vain. These are the times of trials, and the times after
// the last good checkpoint of failed attempts. If the job did not reach its end, all attempts were in vain.
func wasted(report runreport.Report) float64 {
	sum := report.GPUSeconds.Wasted
	if report.State != job.StateSucceeded {
		sum = report.GPUSeconds.Used
	}
	if report.Trial != nil {
		for _, step := range report.Trial.Steps {
			if step.Started != nil && step.Ended != nil {
				sum += float64(step.Ranks) * step.Ended.Sub(*step.Started).Seconds()
			}
		}
	}
	return sum
}

// seconds formats a duration in seconds.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
