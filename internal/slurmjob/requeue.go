package slurmjob

import (
	"context"
	"fmt"
)

// Requeue ends a running job and queues it again, without some nodes. An error says what is left
// to do by hand, if Slurm holds the job.
func Requeue(ctx context.Context, j Job, without []string) error {
	if len(without) == 0 {
		_, err := scontrol(ctx, "requeue", j.ID)
		return err
	}
	// Slurm changes the nodes of a job only while the job is queued. It could start at once, so
	// it is held meanwhile.
	if _, err := scontrol(ctx, "requeuehold", j.ID); err != nil {
		return err
	}
	_, err := scontrol(ctx, "update", "JobId="+j.ID, "ExcNodeList="+exclude(j.Excluded, without))
	if _, released := scontrol(ctx, "release", j.ID); released != nil {
		return fmt.Errorf("Slurm holds job %s, which was to run again: type scontrol release %[1]s: %w", j.ID, released)
	}
	if err != nil {
		return fmt.Errorf("job %s is queued again, but with the nodes that it was to avoid: %w", j.ID, err)
	}
	return nil
}

// exclude returns a list of nodes: those of before and some others.
func exclude(before string, others []string) string {
	list := before
	for _, node := range others {
		if list != "" {
			list += ","
		}
		list += node
	}
	return list
}
