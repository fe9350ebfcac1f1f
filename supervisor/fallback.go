package supervisor

import (
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// maxUses is how many attempts may start from one checkpoint and fail before any
// progress.
const maxUses = 2

// innocent are the categories of failures that do not come from the checkpoint
// that an attempt started from.
var innocent = []job.Category{
	job.SyntaxError, job.OutputError, job.CUDAInit, job.CUDAVersion, job.MissingLibrary, job.MPIRuntime, job.DiskFull,
	job.GPUHardware, job.HostLost, job.NetworkError, job.PortInUse, job.Preempted, job.LaunchError,
	job.Straggler, job.TimeLimit, job.Cancelled, job.StoppedEarly,
}

// moved reports whether an attempt made progress since its own start: it told a
// step, or left a newer checkpoint. A program may print step 0 before it loads.
func (p Past) moved() bool { return p.Step > 0 || newer(p.From, p.Saved) }

// stuck reports whether an attempt may have failed in loading its checkpoint: it
// made no progress, and its cause does not show that it was something else.
func (p Past) stuck() bool {
	return p.Resumed != nil && !p.moved() && !slices.Contains(innocent, category(p.Cause))
}

// avoided returns the checkpoints that no attempt is to start from any more, and
// those that one should start from only when there is no other.
//
// A failure that a program shows by itself would come again, so another
// checkpoint is better at once. One that may be chance, such as a signal, is
// worth a second attempt from the same checkpoint. A checkpoint that cannot be
// loaded is given up at once where the run began without any: then, when all
// are, it begins anew. A run that was told to resume does not begin anew, since
// it could write over the checkpoints that the user wants to keep.
func avoided(past []Past) (never, rather []job.Checkpoint) {
	type use struct {
		of    *job.Checkpoint
		stuck int  // attempts
		sure  bool // the same would come again
	}
	var uses []*use
	for _, p := range past {
		if p.Resumed == nil {
			continue
		}
		i := slices.IndexFunc(uses, func(u *use) bool { return sameCheckpoint(u.of, p.Resumed) })
		if i < 0 {
			i = len(uses)
			uses = append(uses, &use{of: p.Resumed})
		}
		u, what := uses[i], category(p.Cause)
		switch {
		case p.moved(): // it can be loaded
			u.stuck, u.sure = 0, false
		case !p.stuck():
		case what == job.CheckpointError && past[0].Resumed == nil:
			u.stuck = maxUses
		default:
			u.stuck++
			u.sure = u.sure || what == job.CheckpointError || what.Fault() == job.FaultUser
		}
	}
	for _, u := range uses {
		switch {
		case u.stuck >= maxUses:
			never = append(never, *u.of)
		case u.sure:
			rather = append(rather, *u.of)
		}
	}
	return never, rather
}

// exhausted reports whether the run must end since the job failed to start from
// every checkpoint that there is. A run that began without a checkpoint begins
// anew where they cannot be loaded; where something else may be wrong, beginning
// anew would only throw work away.
func exhausted(earlier []Past, last Past) bool {
	if !last.stuck() || last.Next != nil {
		return false
	}
	past := append(slices.Clone(earlier), last)
	never, _ := avoided(past)
	return slices.ContainsFunc(never, func(c job.Checkpoint) bool { return sameCheckpoint(&c, last.Resumed) }) &&
		(category(last.Cause) != job.CheckpointError || past[0].Resumed != nil)
}

// rescues reports whether an attempt from another checkpoint is worth making
// though the failure would otherwise end the run: the program has worked in this
// run, so the checkpoint may be what is wrong. That is done once in a row of
// attempts without progress, and not against the word of the job's policy.
func (p Policy) rescues(earlier []Past, last Past) bool {
	if _, ok := p.Actions[category(last.Cause)]; ok || !last.stuck() || last.Next == nil || sameCheckpoint(last.Next, last.Resumed) {
		return false
	}
	done := slices.ContainsFunc(p.row(earlier, last), func(before Past) bool {
		return before.stuck() && !sameCheckpoint(before.Resumed, last.Resumed)
	})
	return !done && slices.ContainsFunc(earlier, Past.moved)
}

// instead tells which checkpoint a stuck attempt is followed by; empty when it is
// the same one, or when the attempt was not stuck.
func instead(last Past) string {
	switch {
	case !last.stuck() || sameCheckpoint(last.Next, last.Resumed):
		return ""
	case last.Next == nil:
		return "the beginning"
	}
	return filepath.Base(last.Next.Path)
}

// sameCheckpoint reports whether two checkpoints are one that has not changed.
func sameCheckpoint(a, b *job.Checkpoint) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Path == b.Path && a.Time.Equal(b.Time)
}
