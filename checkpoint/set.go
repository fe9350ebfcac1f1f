package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/naming"
	"github.com/gangrun/gangrun/internal/job"
)

// comparedSteps is how many older steps gangrun compares with a step, to find out which files the step lacks.
// It is small, so that a job that goes on with fewer ranks loses only one checkpoint.
const comparedSteps = 2

// together combines candidates that are files of the ranks of one checkpoint into one candidate. The path of
// this candidate is the path of the lowest rank's file.
func together(all []candidate) (out []candidate) {
	at := map[string]int{} // the index in out
	for _, c := range all {
		set, numbers, of, ok := naming.Shard(filepath.Base(c.path))
		if !ok || c.program {
			out = append(out, c)
			continue
		}
		c.numbers, c.of = numbers, of
		if set = filepath.Join(filepath.Dir(c.path), set); c.dir {
			set += "/"
		}
		i, known := at[set]
		if !known {
			i = len(out)
			at[set] = i
			out = append(out, candidate{})
		}
		out[i].shards = append(out[i].shards, c)
	}
	for i, c := range out {
		if c.shards != nil {
			out[i] = joined(c.shards)
		}
	}
	return out
}

// joined returns shards as one candidate.
func joined(shards []candidate) candidate {
	slices.SortFunc(shards, func(a, b candidate) int {
		return cmp.Or(slices.Compare(a.numbers, b.numbers), strings.Compare(a.path, b.path))
	})
	c := shards[0]
	c.shards, c.files = shards, nil
	for _, s := range shards {
		c.tier = max(c.tier, s.tier)
		if s.time.After(c.time) {
			c.time = s.time
		}
		for _, m := range s.files {
			c.files = append(c.files, s.within(m))
		}
	}
	return c
}

// within returns a file of a shard as a file of the whole set.
func (c candidate) within(m member) member {
	if c.dir {
		m.name = filepath.Join(filepath.Base(c.path), m.name)
	}
	return m
}

// verifyShards verifies a checkpoint of which each rank has written a part.
func (c candidate) verifyShards(ctx context.Context, seen *blob.Seen) (found job.Checkpoint, open tree, err error) {
	if n := int64(len(c.shards)); n < c.of {
		return found, nil, &IncompleteError{c.path, fmt.Sprintf("it has %d of its %d files", n, c.of)}
	}
	var rest []unsettled
	for i, s := range c.shards {
		part, files, more, err := verifyOnce(ctx, s.path, seen)
		if flaw.Is(err) {
			return job.Checkpoint{}, nil, &IncompleteError{c.path, flaw.Within(filepath.Base(s.path), err).Error()}
		}
		if err != nil {
			return job.Checkpoint{}, nil, err
		}
		if rest = append(rest, more...); i == 0 {
			found = part
			found.Bytes = 0
		}
		found.Bytes += part.Bytes
		if part.Time.After(found.Time) {
			found.Time = part.Time
		}
		for _, m := range files {
			open = append(open, s.within(m))
		}
	}
	err = settled(ctx, rest)
	if flaw.Is(err) {
		err = &IncompleteError{c.path, err.Error()}
	}
	return found, open, err
}

// kind returns a text that is the same for all checkpoints of a job that differ only in their numbers.
func (c candidate) kind() string {
	return filepath.Join(filepath.Dir(c.path), naming.Pattern(filepath.Base(c.path)))
}

// count returns how many files or directories of the checkpoint directory the candidate consists of.
func (c candidate) count() int { return max(1, len(c.shards)) }

// lacksShards returns why a checkpoint lacks files: it has fewer files than the checkpoints before it, or its
// files begin with another rank. It returns "" if the checkpoint lacks no files.
func (c candidate) lacksShards(older []candidate) string {
	least, like := 0, ""
	compared, sameFirst := 0, false
	for _, o := range older {
		if compared == comparedSteps {
			break
		}
		if o.shards == nil || o.step == c.step || o.kind() != c.kind() {
			continue
		}
		if n := o.count(); compared == 0 || n < least {
			least, like = n, filepath.Base(o.path)
		}
		sameFirst = sameFirst || slices.Equal(o.shards[0].numbers, c.shards[0].numbers)
		compared++
	}
	switch {
	case c.count() >= least && (sameFirst || compared == 0):
		return ""
	case c.count() >= least:
		return fmt.Sprintf("it has nothing like %s", like)
	}
	return fmt.Sprintf("it has %s, and there are %d as %s", files(c.count()), least, like)
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// pairs sets the field others of all candidates that have the same step as another candidate. A job may write
// the weights and the optimizer to two files.
func pairs(steps []candidate) {
	for from := 0; from < len(steps); {
		to := from + 1
		for to < len(steps) && steps[to].step == steps[from].step {
			to++
		}
		if to-from > 1 {
			group := slices.Clone(steps[from:to])
			for i := from; i < to; i++ {
				steps[i].others = group
			}
		}
		from = to
	}
}

// half returns why a candidate that is good itself is probably only a part of its step. Either another file of
// the step is broken, or each of the steps before has one file more. It returns "" if gangrun finds no such
// reason.
func (c candidate) half(ctx context.Context, older []candidate, deep bool) string {
	have := map[string]bool{}
	for _, o := range c.others {
		if o.path == c.path {
			continue
		}
		have[o.kind()] = true
		o.checked.seen.Deep = deep
		if _, _, err := o.checked.verify(ctx, o); err != nil {
			if flawed, ok := err.(*IncompleteError); ok {
				return fmt.Sprintf("suspect: %s, of the same step, is broken: %s", filepath.Base(o.path), flawed.Reason)
			}
		}
	}
	// usual has, for each kind of file that all compared steps have, the name of the newest such file.
	usual := map[string]string{}
	compared := 0
	for _, o := range older {
		if compared == comparedSteps {
			break
		}
		if o.step == c.step || o.step < 0 || o.kind() != c.kind() {
			continue
		}
		kinds := map[string]string{}
		for _, x := range o.others {
			kinds[x.kind()] = filepath.Base(x.path)
		}
		if compared++; compared == 1 {
			usual = kinds
			continue
		}
		for kind := range usual {
			if kinds[kind] == "" {
				delete(usual, kind)
			}
		}
	}
	var missing []string
	for kind, name := range usual {
		if !have[kind] && kind != c.kind() {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 || compared < comparedSteps { // there may be files that the job writes only once
		return ""
	}
	return fmt.Sprintf("suspect: the step before has %s, and this one has nothing like it", slices.Min(missing))
}

// checked keeps the result of verifying a candidate, so that gangrun reads no file twice.
type checked struct {
	done  bool
	found job.Checkpoint
	open  tree
	err   error
	seen  blob.Seen
}

// verify verifies a candidate, or returns the result if it was verified before.
func (k *checked) verify(ctx context.Context, c candidate) (job.Checkpoint, tree, error) {
	if !k.done {
		if c.shards != nil {
			k.found, k.open, k.err = c.verifyShards(ctx, &k.seen)
		} else {
			k.found, k.open, k.err = verify(ctx, c.path, &k.seen)
		}
		k.done = ctx.Err() == nil
	}
	return k.found, k.open, k.err
}
