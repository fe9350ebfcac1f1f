package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Skipped is a file or directory that looks like a checkpoint but was not used. If Taken is true, gangrun used
// it after all, because there was nothing better.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Taken  bool   `json:"taken,omitempty"`
}

// String returns a description, such as "skipped ckpt-40.pt: truncated: entry archive/data/3 fails its CRC".
func (s Skipped) String() string {
	how := "skipped"
	if s.Taken {
		how = "took"
	}
	return fmt.Sprintf("%s %s: %s", how, filepath.Base(s.Path), s.Reason)
}

// Newest returns the newest complete checkpoint in dir as best. The Path of best is empty if there is no
// complete checkpoint, or if dir is missing or empty. skipped has the files and directories that are newer than
// best but are incomplete or suspect, newest first. The newest checkpoint is the checkpoint with the highest step
// in its name. A checkpoint without a step in its name is ordered among the others by the time of its last change.
// A file comes after all others if its size is suspect: its format does not show whether it is complete, and it is
// smaller than the older checkpoints. See docs/checkpoints.md. Newest returns an error if ctx ends, if dir cannot be
// read, or if Newest found no checkpoint and could not read some of the candidates.
func Newest(ctx context.Context, dir string) (best job.Checkpoint, skipped []Skipped, err error) {
	return NewestBut(ctx, dir, nil, nil)
}

// NewestBut is like Newest, but ignores the checkpoints in initial and in avoided, except those that have changed
// since they were put into initial or avoided. initial has the possible checkpoints that were in dir before the run
// began. They may be checkpoints of another run, with higher steps.
func NewestBut(ctx context.Context, dir string, initial Seen, avoided []job.Checkpoint) (best job.Checkpoint, skipped []Skipped, err error) {
	return search(ctx, dir, initial, avoided, false)
}

// NewestFinite is like NewestBut, but also looks at the numbers of tensors. It skips checkpoints that have NaN
// or +Inf among them, because a training that resumes from such a checkpoint has diverged already.
func NewestFinite(ctx context.Context, dir string, initial Seen, avoided []job.Checkpoint) (best job.Checkpoint, skipped []Skipped, err error) {
	return search(ctx, dir, initial, avoided, true)
}

func search(ctx context.Context, dir string, initial Seen, avoided []job.Checkpoint, deep bool) (best job.Checkpoint, skipped []Skipped, err error) {
	all, skipped, err := candidates(dir)
	if err != nil {
		return job.Checkpoint{}, nil, fmt.Errorf("cannot look for checkpoints: %w", err)
	}
	all = slices.DeleteFunc(all, initial.has)
	skipped = slices.DeleteFunc(skipped, func(s Skipped) bool { _, ok := initial[s.Path]; return ok })
	var suspect job.Checkpoint // the newest suspect checkpoint
	var unread error
	for i, c := range all {
		if contains(avoided, c.path, c.time) {
			continue
		}
		j := c.judge(ctx, all[i+1:], deep)
		switch {
		case ctx.Err() != nil:
			return job.Checkpoint{}, skipped, ctx.Err()
		case j.verdict == Good && !contains(avoided, j.found.Path, j.found.Time):
			return j.found, skipped, nil
		case j.err == nil && contains(avoided, j.found.Path, j.found.Time):
			continue
		case errors.Is(j.err, fs.ErrNotExist):
			continue // the job has removed it meanwhile
		case j.err == nil && j.verdict != NotFinite && suspect.Path == "":
			suspect = j.found
		case j.verdict == Unreadable:
			unread = errors.Join(unread, j.err)
		}
		skipped = append(skipped, Skipped{Path: c.path, Reason: j.why})
	}
	if suspect.Path != "" {
		i := slices.IndexFunc(skipped, func(s Skipped) bool { return s.Path == suspect.Path })
		skipped[i].Taken = true
		return suspect, skipped, nil
	}
	if unread != nil {
		unread = fmt.Errorf("cannot look for checkpoints: %w", unread)
	}
	return job.Checkpoint{}, skipped, unread
}

// contains reports whether those has a checkpoint with that path and that time of the last change.
func contains(those []job.Checkpoint, path string, changed time.Time) bool {
	return slices.ContainsFunc(those, func(c job.Checkpoint) bool { return c.Path == path && c.Time.Equal(changed) })
}

// Seen maps the path of each possible checkpoint of a directory to the time of its last change.
type Seen map[string]time.Time

// Look returns the possible checkpoints that are in dir now. If dir does not exist, Look returns an empty Seen.
func Look(dir string) (Seen, error) {
	all, skipped, err := candidates(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot look for checkpoints: %w", err)
	}
	seen := Seen{}
	for _, c := range all {
		seen[c.path] = c.time
	}
	for _, s := range skipped {
		seen[s.Path] = time.Time{}
	}
	return seen, nil
}

// has reports whether the candidate was there and has not changed since. The candidate that is dir itself
// changes with every file in it, and so is never the same.
func (s Seen) has(c candidate) bool {
	when, ok := s[c.path]
	return ok && !when.IsZero() && when.Equal(c.time)
}
