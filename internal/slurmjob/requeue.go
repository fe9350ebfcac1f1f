package slurmjob

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Requeue ends a running job and queues it again, without some nodes. Slurm starts such a job only
// after a while (its credential lifetime, two minutes), and changes the nodes of a job only while
// it is queued.
func Requeue(ctx context.Context, j Job, without []string) error {
	if _, err := scontrol(ctx, "requeue", j.ID); err != nil || len(without) == 0 {
		return err
	}
	list := strings.Join(without, ",")
	if j.Excluded != "" {
		list = j.Excluded + "," + list
	}
	var err error
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
