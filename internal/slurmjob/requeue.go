package slurmjob

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Requeue ends a running job and queues it again, without some nodes. Slurm starts such a job only
// after a while (its credential lifetime, two minutes), and changes the nodes of a job only while
// it is queued. Requeue and exclusion are one call of scontrol, because Slurm may kill this process
// after the first: if a shell has started this process, Slurm does so as soon as the shell has
// ended.
func Requeue(ctx context.Context, j Job, without []string) error {
	if len(without) == 0 {
		_, err := scontrol(ctx, "requeue", j.ID)
		return err
	}
	list := strings.Join(without, ",")
	if j.Excluded != "" {
		list = j.Excluded + "," + list
	}
	err := scontrolAll(ctx, "requeue "+j.ID, "update JobId="+j.ID+" ExcNodeList="+list)
	if err == nil {
		return nil
	}
	if now, failed := Show(ctx, j.ID); failed == nil && now.State == "RUNNING" {
		return err
	}
	for deadline := time.Now().Add(Limit); time.Now().Before(deadline); {
		if _, err = scontrol(ctx, "update", "JobId="+j.ID, "ExcNodeList="+list); err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("job %s is queued again, but may get %s: %w", j.ID, list, err)
}
