// Package batchjob finds mistakes in how gangrun was started inside a batch job, before
// anything is started.
package batchjob

import (
	"bytes"
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
)

// Start is how gangrun was started.
type Start struct {
	Lookup   func(name string) (string, bool) // os.LookupEnv
	Detach   bool                             // the run is to go on without this process
	OwnHosts bool                             // the user has named hosts, so that those of the job are not used
}

// askLimit bounds the question to Slurm whether a job still runs.
const askLimit = 5 * time.Second

// Check returns a usage error if the start is a mistake.
func (s Start) Check(ctx context.Context) error {
	if n, err := strconv.Atoi(s.get("SLURM_STEP_NUM_TASKS")); err == nil && n > 1 && s.get("SLURM_STEP_ID") != "" && s.get("SLURM_PROCID") != "" {
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
	if state, known := jobState(ctx, id); known && state != "RUNNING" {
		return failure.Usage("leave the shell of that job, or: unset SLURM_JOB_ID; or name hosts with --hosts", "SLURM_JOB_ID says that gangrun is in Slurm job %s, which does not run (%s)", id, state)
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

// jobState asks Slurm for the state of a job. known is false if Slurm does not answer.
func jobState(ctx context.Context, id string) (state string, known bool) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "scontrol", "-o", "show", "job", id)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return "it is not known to Slurm", strings.Contains(errs.String(), "Invalid job id")
	}
	return stateOf(out.String())
}

// stateOf reads the state from what "scontrol -o show job" prints.
func stateOf(text string) (state string, known bool) {
	for _, field := range strings.Fields(text) {
		if value, ok := strings.CutPrefix(field, "JobState="); ok {
			return value, true
		}
	}
	return "", false
}
