package main

import (
	"context"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/job"
)

// checkpoints implements supervisor.Checkpoints.
type checkpoints struct {
	resume bool
}

func (c *checkpoints) Newest(ctx context.Context, dir string) (job.Checkpoint, bool, error) {
	best, _, err := checkpoint.Newest(ctx, dir)
	return best, best.Path != "", err
}
