package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// checkpoints implements supervisor.Checkpoints. Of a run that does not resume,
// only what the run has written itself counts once it has begun: what lay there
// at the first look may be another run's, with higher steps.
type checkpoints struct {
	resume bool
	seen   string // file in which a later controller finds what lay there; "" for none

	mu     sync.Mutex
	looked bool
	before checkpoint.Seen
}

func (c *checkpoints) Newest(ctx context.Context, dir string, not []job.Checkpoint) (found *job.Checkpoint, notes []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.recall(); err != nil {
		return nil, nil, err
	}
	best, skipped, err := checkpoint.NewestBut(ctx, dir, c.before, not)
	if err == nil && !c.looked && !c.resume {
		if c.before, err = checkpoint.Look(dir); err != nil {
			return nil, nil, err
		}
		c.looked, skipped = true, nil // another run's are nobody's concern
		if err := c.remember(); err != nil {
			return nil, nil, err
		}
	}
	for _, s := range skipped {
		notes = append(notes, s.String())
	}
	if best.Path == "" || err != nil {
		return nil, notes, err
	}
	return &best, notes, nil
}

// maxRecord is more bytes than that file ever has.
const maxRecord = 64 << 20

// seenName is the file of a run's directory that holds what may have been checkpoints
// before the run began.
const seenName = "checkpoints.json"

// recall finds what an earlier controller has seen.
func (c *checkpoints) recall() error {
	if c.looked || c.resume || c.seen == "" {
		return nil
	}
	text, err := safefile.ReadFile(c.seen, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = exact.Unmarshal(text, &c.before)
	}
	if err != nil {
		return fmt.Errorf("what lay in the checkpoint directory before the run: %w", err)
	}
	c.looked = true
	return nil
}

// remember keeps what was seen for a later controller.
func (c *checkpoints) remember() error {
	if c.seen == "" {
		return nil
	}
	text, err := exact.Marshal(c.before)
	if err == nil {
		err = atomicfile.WriteFile(c.seen, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("what lay in the checkpoint directory before the run: %w", err)
	}
	return nil
}
