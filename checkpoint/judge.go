package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/layout"
	"github.com/gangrun/gangrun/checkpoint/naming"
	"github.com/gangrun/gangrun/internal/job"
)

// Verdict says what a checkpoint is good for.
type Verdict string

// The verdicts. A retry resumes from a checkpoint that is Suspect or WeightsOnly only if there is no good
// checkpoint.
const (
	Good        Verdict = "good"
	Suspect     Verdict = "suspect"      // it may have been cut off, or be a mixture of two saves
	WeightsOnly Verdict = "weights-only" // it can be loaded, but has no state of the training
	NotFinite   Verdict = "not-finite"   // its tensors have NaN or +Inf
	Broken      Verdict = "broken"
	Unfinished  Verdict = "unfinished" // it still has the name of a temporary file
	Unreadable  Verdict = "unreadable"
)

// judgement is what gangrun found out about a candidate.
type judgement struct {
	found   job.Checkpoint
	verdict Verdict
	why     string // for a good candidate, what its checks cannot tell; it may be empty
	err     error  // set for a candidate that is broken or unreadable
	small   bool   // it is suspect only because of its size
}

// judge verifies a candidate. older has the candidates that are ranked after it. If deep is true, judge also
// looks at the numbers of the tensors.
func (c candidate) judge(ctx context.Context, older []candidate, deep bool) judgement {
	seen := &c.checked.seen
	seen.Deep = deep
	found, open, err := c.verify(ctx, older)
	var incomplete *IncompleteError
	switch {
	case errors.As(err, &incomplete):
		return judgement{verdict: Broken, why: incomplete.Reason, err: err}
	case err != nil:
		return judgement{verdict: Unreadable, why: err.Error(), err: err}
	}
	if n := seen.Numbers; n.NaN+n.PosInf > 0 {
		return judgement{found, NotFinite, fmt.Sprintf("%s has %d NaN and %d Inf, of %d numbers in all", n.First, n.NaN, n.PosInf+n.NegInf, n.Scanned), nil, false}
	}
	if reason := c.suspicion(open, older); reason != "" {
		return judgement{found, Suspect, reason, nil, true}
	}
	switch {
	case seen.WeightsOnly:
		return judgement{found, WeightsOnly, seen.Doubt, nil, false}
	case seen.Doubt != "":
		return judgement{found, Suspect, seen.Doubt, nil, false}
	}
	if why := c.half(ctx, older, deep); why != "" {
		return judgement{found, Suspect, why, nil, false}
	}
	why := remark(seen, found.Format)
	if len(c.shards) > 1 && why == "" {
		set, _, _, _ := naming.Shard(filepath.Base(c.path))
		why = fmt.Sprintf("%s: %s", files(len(c.shards)), set)
	}
	return judgement{found, Good, why, nil, false}
}

// remark returns what the checks of a good checkpoint cannot tell.
func remark(seen *blob.Seen, format string) string {
	n := seen.Numbers
	switch {
	case seen.Unsummed:
		return "its checksums were not computed, so that a wrong bit would not be noticed"
	case n.NegInf > 0:
		return fmt.Sprintf("%s has -Inf, as masks have (%d of %d numbers)", n.First, n.NegInf, n.Scanned)
	case seen.Deep && n.Scanned == 0:
		return "its numbers cannot be looked at in this format"
	case n.Skipped > 0:
		return fmt.Sprintf("%d numbers are finite; %d tensors of other types were not looked at", n.Scanned, n.Skipped)
	case seen.Deep:
		return fmt.Sprintf("all %d numbers are finite", n.Scanned)
	case format == formatPlain:
		return "its format is unknown: only its size was looked at"
	}
	return ""
}

// verify verifies a candidate. If it is a directory with a step, it must have as many files of each kind as the
// one before it: a program that died between two files leaves only complete files. This does not hold for
// torch.distributed.checkpoint, whose metadata names all files.
func (c candidate) verify(ctx context.Context, older []candidate) (_ job.Checkpoint, open tree, _ error) {
	found, open, err := c.checked.verify(ctx, c)
	found.Step = c.step
	if err == nil && c.shards != nil {
		if missing := c.lacksShards(older); missing != "" {
			return job.Checkpoint{}, nil, &IncompleteError{c.path, missing}
		}
	}
	if err != nil || !c.dir || c.files.has(dcpMetadata) || c.step < 0 {
		return found, open, err
	}
	name := filepath.Base(c.path)
	for _, o := range older {
		if !o.dir || o.step < 0 || naming.Pattern(filepath.Base(o.path)) != naming.Pattern(name) {
			continue
		}
		if missing := lacks(c.files, o.files, found.Format == layout.Orbax); missing != "" {
			return job.Checkpoint{}, nil, &IncompleteError{c.path, fmt.Sprintf("it lacks a file: %s has %s", filepath.Base(o.path), missing)}
		}
		break
	}
	return found, open, nil
}

// lacks returns the name of a file in older that has no counterpart in newer. The name of the counterpart may
// differ in its numbers. lacks returns "" if there is no such file. It ignores files that are no part of a
// checkpoint, but not the marks that a checkpoint is complete. If marksOnly is true, lacks looks only at these
// marks, because the names of the other files are random.
func lacks(newer, older tree, marksOnly bool) string {
	have := map[string]int{}
	for _, m := range newer {
		have[naming.Pattern(m.name)]++
	}
	for _, m := range older {
		base := filepath.Base(m.name)
		if mark := marker().MatchString(base); !mark && (marksOnly || bookkeeping(base, m.size)) {
			continue
		}
		if have[naming.Pattern(m.name)]--; have[naming.Pattern(m.name)] < 0 {
			return m.name
		}
	}
	return ""
}
