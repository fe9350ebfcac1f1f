package submit

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// limit limits the time of one command of Slurm.
const limit = time.Minute

// IDs are the numbers of submitted jobs. Trial is empty if the job has none.
type IDs struct {
	Trial string `json:"trial"`
	Gang  string `json:"gang"`
}

// Send submits a plan. env is the environment of the jobs. If the second job cannot be submitted,
// it cancels the first.
func Send(ctx context.Context, p Plan, env []string) (ids IDs, err error) {
	gang := p.Gang
	if p.Trial != nil {
		if ids.Trial, err = sbatch(ctx, *p.Trial, env); err != nil {
			return ids, err
		}
		gang = gang.After(ids.Trial)
	}
	ids.Gang, err = sbatch(ctx, gang, env)
	if err != nil && ids.Trial != "" {
		cancelling, stop := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer stop()
		if failed := exec.CommandContext(cancelling, "scancel", ids.Trial).Run(); failed != nil {
			err = fmt.Errorf("%w; the trial, job %s, is still in the queue: %v", err, ids.Trial, failed)
		}
	}
	return ids, err
}

// sbatch submits one job and returns its number.
func sbatch(ctx context.Context, b Batch, env []string) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "sbatch", append([]string{"--parsable"}, b.Args...)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, strings.NewReader(b.Script), &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(errs.String()); text != "" {
			err = fmt.Errorf("%s", strings.ToValidUTF8(text, "?"))
		}
		return "", err
	}
	id, _, _ = strings.Cut(strings.TrimSpace(out.String()), ";") // ;CLUSTER may follow the number
	if id == "" {
		return "", fmt.Errorf("sbatch printed no number of a job")
	}
	return id, nil
}
