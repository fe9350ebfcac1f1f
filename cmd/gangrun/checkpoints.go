package main

import (
	"context"
	"sync"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/job"
)

// checkpoints implements supervisor.Checkpoints. Of a run that does not resume,
// only what the run has written itself counts once it has begun: what lay there
// at the first look may be another run's, with higher steps.
type checkpoints struct {
	resume bool

	mu     sync.Mutex
	looked bool
	before checkpoint.Seen
}

func (c *checkpoints) Newest(ctx context.Context, dir string) (found *job.Checkpoint, notes []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	best, skipped, err := checkpoint.NewestBut(ctx, dir, c.before)
	if err == nil && !c.looked && !c.resume {
		if c.before, err = checkpoint.Look(dir); err != nil {
			return nil, nil, err
		}
		c.looked, skipped = true, nil // another run's are nobody's concern
	}
	for _, s := range skipped {
		notes = append(notes, s.String())
	}
	if best.Path == "" || err != nil {
		return nil, notes, err
	}
	return &best, notes, nil
}
