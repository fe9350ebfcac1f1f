package retry

import (
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// maxUses is how many attempts may start from one checkpoint and fail before they make progress.
const maxUses = 2

// innocent has the categories of failures for which a checkpoint is never to blame.
var innocent = []job.Category{
	job.SyntaxError, job.OutputError, job.CUDAInit, job.CUDAVersion, job.MissingLibrary, job.MPIRuntime, job.DiskFull,
	job.GPUHardware, job.HostLost, job.NetworkError, job.PortInUse, job.Preempted, job.LaunchError,
	job.Straggler, job.TimeLimit, job.Cancelled, job.StoppedEarly,
}

// Moved reports whether an attempt has loaded its checkpoint: a rank printed a step above 0, or the attempt left a
// newer checkpoint. A program may print step 0 before it loads a checkpoint.
func (p Past) Moved() bool { return p.Step > 0 || Newer(p.From, p.Saved) }

// Stuck reports whether an attempt may have failed to load its checkpoint. This is so if the attempt started from a
// checkpoint, Moved returns false, and the cause of the failure does not rule it out.
func (p Past) Stuck() bool {
	return p.Resumed != nil && !p.Moved() && !slices.Contains(innocent, CategoryOf(p.Cause))
}

// Avoided returns two lists of checkpoints. No attempt may start any more from a checkpoint in barred. An attempt may
// start from a checkpoint in lastResort only if there is no other checkpoint.
//
// Avoided is about attempts that may have failed to load their checkpoint (see Past.Stuck). If the program itself
// reported the failure, a second attempt from the checkpoint would fail in the same way: after one such attempt, the
// checkpoint is in lastResort. If the failure may have been chance, such as a signal, a second attempt may start from
// the same checkpoint. After two failures of any kind, the checkpoint is in barred.
//
// In a run that began without a checkpoint, Avoided puts a checkpoint into barred after its first failure if the
// failure was a job.CheckpointError. When all checkpoints are in barred, such a run starts from the beginning of the
// job. A run with --resume does not, because it could overwrite the checkpoints that the user wants to keep.
func Avoided(past []Past) (barred, lastResort []job.Checkpoint) {
	type use struct {
		of    *job.Checkpoint
		stuck int  // attempts
		sure  bool // the same failure would happen again
	}
	var uses []*use
	for _, p := range past {
		barred = append(barred, p.Spoilt...)
		if p.Resumed == nil {
			continue
		}
		i := slices.IndexFunc(uses, func(u *use) bool { return SameCheckpoint(u.of, p.Resumed) })
		if i < 0 {
			i = len(uses)
			uses = append(uses, &use{of: p.Resumed})
		}
		u, what := uses[i], CategoryOf(p.Cause)
		switch {
		case p.Moved(): // the checkpoint can be loaded
			u.stuck, u.sure = 0, false
		case !p.Stuck():
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
			barred = append(barred, *u.of)
		case u.sure:
			lastResort = append(lastResort, *u.of)
		}
	}
	return barred, lastResort
}

// exhausted reports whether the run must end because the job failed to start from each of its checkpoints. A
// run that began without a checkpoint starts from the beginning again if the checkpoints cannot be loaded. But
// if something else may be wrong, another start would only waste work.
func exhausted(earlier []Past, last Past) bool {
	if !last.Stuck() || last.Next != nil {
		return false
	}
	past := append(slices.Clone(earlier), last)
	barred, _ := Avoided(past)
	return slices.ContainsFunc(barred, func(c job.Checkpoint) bool { return SameCheckpoint(&c, last.Resumed) }) &&
		(CategoryOf(last.Cause) != job.CheckpointError || past[0].Resumed != nil)
}

// rescues reports whether the run makes an attempt from another checkpoint although the failure would otherwise
// end the run. The program has worked in this run, so the checkpoint may be at fault. gangrun does this once in
// a row of attempts without progress. It does not do it if the job's policy names an action for the category.
func (p Policy) rescues(earlier []Past, last Past) bool {
	if _, ok := p.Actions[CategoryOf(last.Cause)]; ok || !last.Stuck() || last.Next == nil || SameCheckpoint(last.Next, last.Resumed) {
		return false
	}
	done := slices.ContainsFunc(p.row(earlier, last), func(before Past) bool {
		return before.Stuck() && !SameCheckpoint(before.Resumed, last.Resumed)
	})
	return !done && slices.ContainsFunc(earlier, Past.Moved)
}

// instead returns the name of the checkpoint from which the attempt after a stuck one starts. It returns "" if
// that is the same checkpoint, or if the attempt was not stuck.
func instead(last Past) string {
	switch {
	case !last.Stuck() || SameCheckpoint(last.Next, last.Resumed):
		return ""
	case last.Next == nil:
		return "the beginning"
	}
	return filepath.Base(last.Next.Path)
}

// SameCheckpoint reports whether a and b describe the same checkpoint in the same state.
func SameCheckpoint(a, b *job.Checkpoint) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Path == b.Path && a.Time.Equal(b.Time)
}
