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
	"github.com/gangrun/gangrun/internal/saves"
)

// checkpoints implements supervisor.Checkpoints. A run that does not resume uses only checkpoints that it has written
// itself. Checkpoints that are in the directory at the first look may belong to another run, and may have higher steps.
type checkpoints struct {
	resume bool
	seen   string // the file that stores the first look for a later controller; empty if there is none
	// spoilt reports whether an earlier run of the job may have left checkpoints with NaN or +Inf. It is called at the
	// first look of a run that resumes. It may be nil.
	spoilt func(context.Context) bool

	mu     sync.Mutex
	looked bool
	first  sync.Once // for the first look of a run that resumes
	before checkpoint.Seen
}

// Newest implements supervisor.Checkpoints. The first look of a run that resumes leaves out checkpoints with NaN or
// +Inf if an earlier run may have left some.
func (c *checkpoints) Newest(ctx context.Context, dir string, avoided []job.Checkpoint) (found *job.Checkpoint, notes []string, err error) {
	find := checkpoint.NewestBut
	if c.resume && c.spoilt != nil {
		c.first.Do(func() {
			if c.spoilt(ctx) {
				find = checkpoint.NewestFinite
			}
		})
	}
	return c.newest(ctx, dir, avoided, find)
}

// NewestFinite implements supervisor.Checkpoints.
func (c *checkpoints) NewestFinite(ctx context.Context, dir string, avoided []job.Checkpoint) (found *job.Checkpoint, notes []string, err error) {
	return c.newest(ctx, dir, avoided, checkpoint.NewestFinite)
}

// Scan implements supervisor.Checkpoints.
func (c *checkpoints) Scan(dir string) ([]saves.Found, error) { return checkpoint.Scan(dir) }

// search finds the newest checkpoint that is not listed in initial or avoided.
type search func(ctx context.Context, dir string, initial checkpoint.Seen, avoided []job.Checkpoint) (job.Checkpoint, []checkpoint.Skipped, error)

func (c *checkpoints) newest(ctx context.Context, dir string, avoided []job.Checkpoint, find search) (found *job.Checkpoint, notes []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.recall(); err != nil {
		return nil, nil, err
	}
	best, skipped, err := find(ctx, dir, c.before, avoided)
	if err == nil && !c.looked && !c.resume {
		if c.before, err = checkpoint.Look(dir); err != nil {
			return nil, nil, err
		}
		c.looked, skipped = true, nil // the skipped checkpoints belong to another run
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

// maxRecord limits the size of the file seen, in bytes.
const maxRecord = 64 << 20

// seenName is the name of a file in the run's directory. The file lists the checkpoints that were in the checkpoint
// directory before the run began.
const seenName = "checkpoints.json"

// recall reads the first look of an earlier controller from the file seen.
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
		return fmt.Errorf("the record of what was in the checkpoint directory before the run: %w", err)
	}
	c.looked = true
	return nil
}

// remember writes the first look to the file seen, for a later controller.
func (c *checkpoints) remember() error {
	if c.seen == "" {
		return nil
	}
	text, err := exact.Marshal(c.before)
	if err == nil {
		err = atomicfile.WriteFile(c.seen, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("the record of what was in the checkpoint directory before the run: %w", err)
	}
	return nil
}
