// Package batchjob finds mistakes in how gangrun was started inside a batch job, before
// anything is started.
package batchjob

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/slurmjob"
)

// Start is how gangrun was started.
type Start struct {
	Lookup   func(name string) (string, bool) // os.LookupEnv, except in tests
	Detach   bool                             // the run will continue without this process
	OwnHosts bool                             // the user has named hosts, so gangrun does not use the hosts of the job
	Terminal bool                             // standard input is a terminal
}

// Check returns a usage error if the start is a mistake.
func (s Start) Check(ctx context.Context) error {
	// In the shell of "srun --pty", gangrun is started once: only the first task has the terminal.
	shell := s.Terminal && s.get("SLURM_PROCID") == "0"
	if n, err := strconv.Atoi(s.get("SLURM_STEP_NUM_TASKS")); err == nil && n > 1 && s.get("SLURM_STEP_ID") != "" && s.get("SLURM_PROCID") != "" && !shell {
		return failure.Usage("start it once, without srun: gangrun run -n "+strconv.Itoa(n)+" -- COMMAND", "srun has started gangrun %d times, and each would start a gang of its own", n)
	}
	id := s.get("SLURM_JOB_ID", "SLURM_JOBID")
	if id == "" {
		return nil
	}
	if s.Detach && s.get("SLURM_TASK_PID") != "" {
		return failure.Usage("leave out --detach: the job itself runs in the background", "--detach in job %s would leave the run to a process that ends with the job's script", id)
	}
	if s.OwnHosts {
		return nil
	}
	if n := s.get("SLURM_HET_SIZE"); n != "" && n != "1" {
		return failure.Usage("submit the job with one component, or name the hosts with --hosts", "job %s has %s components (a heterogeneous job), of which gangrun sees only the first", id, n)
	}
	j, err := slurmjob.Show(ctx, id)
	if errors.Is(err, slurmjob.ErrUnknown) {
		j.State = "Slurm does not know it"
	} else if err != nil {
		return nil // Slurm does not answer
	}
	if j.State != "RUNNING" {
		return failure.Usage("leave the shell of that job, or: unset SLURM_JOB_ID; or name hosts with --hosts", "SLURM_JOB_ID says that gangrun is in Slurm job %s, which does not run (%s)", id, j.State)
	}
	return nil
}

func (s Start) get(names ...string) string {
	for _, name := range names {
		if v, ok := s.Lookup(name); ok && strings.TrimSpace(v) != "" {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
