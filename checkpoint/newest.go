package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Skipped is something that looks like a checkpoint and was not taken.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// String says so, as in "skipped ckpt-40.pt: truncated: entry archive/data/3
// fails its CRC".
func (s Skipped) String() string {
	return fmt.Sprintf("skipped %s: %s", filepath.Base(s.Path), s.Reason)
}

// Newest returns the newest complete checkpoint in dir, with an empty Path when
// there is none, and what looked newer but was skipped, newest first. A
// directory that is missing or empty holds none. The newest is the one with
// the highest step in its name; names without a step are ranked among the
// others by time of change. See docs/checkpoints.md. The error is ctx's, or
// says why dir, or all that might have been taken, cannot be read.
func Newest(ctx context.Context, dir string) (best job.Checkpoint, skipped []Skipped, err error) {
	return NewestBut(ctx, dir, nil)
}

// NewestBut is Newest without what lay in dir before and has not changed since:
// another run's checkpoints may have higher steps than this one's.
func NewestBut(ctx context.Context, dir string, before Seen) (best job.Checkpoint, skipped []Skipped, err error) {
	all, skipped, err := candidates(dir)
	if err != nil {
		return job.Checkpoint{}, nil, fmt.Errorf("cannot look for checkpoints: %w", err)
	}
	all = slices.DeleteFunc(all, before.has)
	skipped = slices.DeleteFunc(skipped, func(s Skipped) bool { _, ok := before[s.Path]; return ok })
	var unread error
	for i, c := range all {
		found, err := c.verify(ctx, all[i+1:])
		var incomplete *IncompleteError
		switch {
		case err == nil:
			return found, skipped, nil
		case ctx.Err() != nil:
			return job.Checkpoint{}, skipped, ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			continue // the job has removed it meanwhile
		case errors.As(err, &incomplete):
			skipped = append(skipped, Skipped{c.path, incomplete.Reason})
		default:
			skipped = append(skipped, Skipped{c.path, err.Error()})
			unread = errors.Join(unread, err)
		}
	}
	if unread != nil {
		unread = fmt.Errorf("cannot look for checkpoints: %w", unread)
	}
	return job.Checkpoint{}, skipped, unread
}

// Seen is what may be checkpoints of one directory: their paths, and when they
// had last changed.
type Seen map[string]time.Time

// Look returns what lies in dir now; nothing when there is no such directory.
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

// has reports whether the candidate was there and is the same still. One that is
// dir itself changes with every file in it and is never the same.
func (s Seen) has(c candidate) bool {
	when, ok := s[c.path]
	return ok && !when.IsZero() && when.Equal(c.time)
}

// candidate is what may be a checkpoint.
type candidate struct {
	path  string
	step  int64 // -1 for none
	time  time.Time
	files tree // of a directory
	tier  tier
	last  bool // it is taken only when nothing else is left
}

// tier says how likely something is a checkpoint. Only those of the highest
// tier that a directory holds are looked at.
type tier int

const (
	tierNone     tier = iota
	tierText          // plain files and named like texts
	tierPlain         // plain
	tierNumbered      // plain, with a step
	tierKnown         // of a known format, by content or by name
)

var (
	texts = []string{".txt", ".json", ".jsonl", ".xml"}
	// A job's best checkpoint may hold no more than its weights.
	finest = re(`(?i)(^|[^a-z])best([^a-z]|$)`)
)

// verify verifies a candidate. A directory of plain files must have as many of
// every kind as the one before it: whoever died between two files leaves whole
// ones.
func (c candidate) verify(ctx context.Context, older []candidate) (job.Checkpoint, error) {
	found, err := Verify(ctx, c.path)
	found.Step = c.step
	if err != nil || c.files == nil || found.Format == formatDCP || c.step < 0 {
		return found, err
	}
	name := filepath.Base(c.path)
	for _, o := range older {
		if o.files == nil || o.step < 0 || pattern(filepath.Base(o.path)) != pattern(name) {
			continue
		}
		if missing := lacks(c.files, o.files); missing != "" {
			return job.Checkpoint{}, &IncompleteError{c.path, fmt.Sprintf("it lacks a file: %s has %s", filepath.Base(o.path), missing)}
		}
		break
	}
	return found, nil
}

// lacks returns a file of older that has none of its kind in newer: whose name
// is the same but for its numbers; empty when there is none.
func lacks(newer, older tree) string {
	have := map[string]int{}
	for _, m := range newer {
		have[pattern(m.name)]++
	}
	for _, m := range older {
		if bookkeeping(filepath.Base(m.name), m.size) {
			continue
		}
		if have[pattern(m.name)]--; have[pattern(m.name)] < 0 {
			return m.name
		}
	}
	return ""
}

// candidates returns what may be a checkpoint in dir, newest first, and links
// that lead nowhere.
func candidates(dir string) (all []candidate, skipped []Skipped, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	whole := false // dir is itself one checkpoint
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, dcpSuffix) || hfIndex().MatchString(name) {
			whole = true
		}
		if temporary(name) {
			continue
		}
		path := filepath.Join(dir, name)
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := filepath.EvalSymlinks(path)
			if err != nil {
				skipped = append(skipped, Skipped{path, "it is a link to nothing"})
				continue
			}
			if filepath.Dir(target) == real {
				continue // which is an entry of its own
			}
			path = target
		}
		if prefix, ok := tensorFlowPrefix(path); ok {
			path = prefix
		}
		if seen[path] {
			continue
		}
		seen[path] = true
		if c, ok := consider(path); ok {
			all = append(all, c)
		}
	}
	return rank(dir, all, whole), skipped, nil
}

// consider returns what lies at path as a candidate, if it can be one at all.
func consider(path string) (candidate, bool) {
	c := candidate{path: path, step: Step(filepath.Base(path)), last: finest().MatchString(filepath.Base(path))}
	info, err := os.Stat(path)
	switch {
	case err != nil: // TensorFlow's files have the path as their prefix
		c.tier = tierKnown
		if info, err = os.Stat(path + ".index"); err == nil {
			c.time = info.ModTime()
		}
	case info.IsDir():
		files, err := lookAt(path)
		if err != nil && !isFlaw(err) {
			c.tier, c.time = tierKnown, info.ModTime() // Verify will say why
			break
		}
		c.files, c.time = files, files.newest()
		for i := 0; i < len(files) && c.tier < tierKnown; i++ {
			c.tier = max(c.tier, tierOf(filepath.Join(path, files[i].name), files[i].size, c.step))
		}
	case info.Mode().IsRegular():
		c.time, c.tier = info.ModTime(), tierOf(path, info.Size(), c.step)
	}
	return c, c.tier > tierNone
}

// tierOf tells how likely a file is a checkpoint, or part of one with that step.
func tierOf(path string, size, step int64) tier {
	name := filepath.Base(path)
	if name == dcpMetadata || strings.HasSuffix(name, dcpSuffix) || hfIndex().MatchString(name) {
		return tierKnown
	}
	if bookkeeping(name, size) {
		return tierNone
	}
	var head []byte
	if f, done, err := openFile(context.Background(), path); err == nil {
		head, _ = f.bytes(0, min(f.size, 64)) // a file that cannot be read is told by its name
		done()
	}
	switch {
	case slices.Contains(texts, strings.ToLower(filepath.Ext(name))):
		return tierText
	case sniff(name, head) != formatPlain || tensorFlowData().MatchString(name):
		return tierKnown
	case step >= 0:
		return tierNumbered
	default:
		return tierPlain
	}
}

// rank returns the candidates of the highest tier, newest first: by step; those
// without one among them by time; then what is only the best; then dir itself,
// if it is one checkpoint, whose files are none of their own.
func rank(dir string, all []candidate, whole bool) []candidate {
	highest := tierNone
	if whole {
		highest = tierKnown
	}
	for _, c := range all {
		highest = max(highest, c.tier)
	}
	var steps, times, last []candidate
	for _, c := range all {
		switch {
		case c.tier < highest || whole && c.files == nil:
		case c.last:
			last = append(last, c)
		case c.step >= 0:
			steps = append(steps, c)
		default:
			times = append(times, c)
		}
	}
	slices.SortFunc(steps, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.step, a.step), byTime(a, b)) })
	slices.SortFunc(times, byTime)
	slices.SortFunc(last, byTime)
	var out []candidate
	for len(steps) > 0 || len(times) > 0 {
		from := &steps
		if len(steps) == 0 || len(times) > 0 && times[0].time.After(steps[0].time) {
			from = &times
		}
		out, *from = append(out, (*from)[0]), (*from)[1:]
	}
	out = append(out, last...)
	if whole {
		out = append(out, candidate{path: dir, step: -1})
	}
	return out
}

// byTime orders the newer first.
func byTime(a, b candidate) int {
	return cmp.Or(b.time.Compare(a.time), strings.Compare(b.path, a.path))
}
