// Package earlystop says what verdicts on the curves of a job mean for its run: the cause of its end, which
// checkpoints can be used, and which ranks have ended because they were asked for a checkpoint. Its functions
// have no side effects.
package earlystop

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
)

// Spoils reports whether a verdict of that kind means that the model's weights are useless.
func Spoils(kind string) bool {
	return kind == string(judge.NotFinite) || kind == string(judge.Diverged)
}

// hints has, for each kind of verdict, what the user can do about it.
var hints = map[judge.Kind]string{
	judge.NotFinite:  "lower the learning rate, or clip gradients; retry-on-diverge goes back to an earlier checkpoint",
	judge.Diverged:   "lower the learning rate, or clip gradients; retry-on-diverge goes back to an earlier checkpoint",
	judge.Flat:       "look whether gradients reach all weights, and at the learning rate",
	judge.Plateau:    "go on with another learning rate, or use the checkpoint",
	judge.Reached:    "",
	judge.WillMiss:   "change the job, or the target",
	judge.BelowPeers: "compare its settings with those of the earlier runs",
	judge.Slower:     "gangrun status shows which ranks are slow",
}

// Hint returns what the user can do about a verdict of that kind. It returns "" if there is nothing to do.
func Hint(kind string) string { return hints[judge.Kind(kind)] }

// NeverSure tells the user that verdicts of that kind never end the run, although the job asks gangrun to end the run
// at such a verdict. The reason is that such verdicts become sure only with a setting that the job lacks. NeverSure
// returns a sentence that names the setting. If the job has the setting, or does not ask for the end of the run,
// NeverSure returns "".
func NeverSure(kind string, s job.Spec) string {
	if s.EarlyStop.For(kind) != job.EarlyEnd || s.Curve.DecayEnd >= 0 || kind != string(judge.Plateau) && kind != string(judge.WillMiss) {
		return ""
	}
	return fmt.Sprintf("%s=stop ends the run only if gangrun knows from which step on the learning rate no longer falls: set curve.decay-end (--decay-end)", kind)
}

// Cause returns the cause of an attempt that gangrun has ended because of a curve.
func Cause(v job.CurveVerdict) job.Cause {
	c := job.Cause{
		Category: job.StoppedEarly, Signature: v.Kind, Rank: -1, Confidence: v.Confidence, Text: v.Text,
		Hint: Hint(v.Kind), Retry: job.RetryNever,
	}
	if Spoils(v.Kind) {
		c.Category = job.ModelDiverged
	}
	return c
}

// By judges the cause of an attempt. yes is true if gangrun has ended the attempt because of a curve. worth is true if
// the run has also served its purpose: it has reached its target, or its model no longer improves.
func By(c job.Cause) (yes, worth bool) {
	yes = (c.Category == job.StoppedEarly || c.Category == job.ModelDiverged) && slices.Contains(job.CurveKinds(), c.Signature)
	return yes, yes && (c.Signature == string(judge.Reached) || c.Signature == string(judge.Plateau))
}

// MaySpoil reports whether a checkpoint may have been written after a verdict became true.
func MaySpoil(c job.Checkpoint, v job.CurveVerdict) bool {
	if !v.ByEpoch && c.Step >= v.Since {
		return true
	}
	return !v.SinceTime.IsZero() && !c.Time.Before(v.SinceTime)
}

// lateness is the longest time after which gangrun notices a value that was printed.
const lateness = 2 * time.Second

// Since reports whether a checkpoint of a run was certainly written after a verdict became true. began is when
// the run began, or nil if that is not known.
func Since(c job.Checkpoint, v job.CurveVerdict, began *time.Time) bool {
	if !v.SinceTime.IsZero() && !c.Time.Before(v.SinceTime) {
		return true
	}
	if c.Step >= 0 && !v.ByEpoch { // the clock of a file server may be a little behind
		return c.Step >= v.Since && (began == nil || !c.Time.Before(began.Add(-time.Minute)))
	}
	return !v.SinceTime.IsZero() && !c.Time.Before(v.SinceTime.Add(-lateness))
}

// Answers reports whether an exit looks like the answer of a rank to a request for a checkpoint. This is so if the rank
// has exited with code 0, or was ended by SIGTERM or by the signal with which gangrun asked for the checkpoint. It is
// also so if the rank has exited with the code that a shell returns after one of these signals.
func Answers(x job.Exit, how job.BeforeStop) bool {
	ends := func(signal int) bool {
		return signal == job.BeforeStopTERM.Number() || signal != 0 && signal == how.Number()
	}
	switch {
	case x.Status == job.Signalled:
		return ends(x.Signal)
	case x.Status == job.Exited && !x.Aborted:
		return x.Code == 0 || x.Code > 128 && ends(x.Code-128)
	}
	return false
}

// MayAnswer reports whether a rank has exited with code 1, as many programs do whenever they end early. If the
// rank has printed no error message, such an exit may be the answer to a request for a checkpoint.
func MayAnswer(x job.Exit) bool {
	return x.Status == job.Exited && x.Code == 1 && !x.Aborted && x.Fault == ""
}

// NoCheckpoint says what to do if no good checkpoint was written between the verdict and the early stop. end is
// the order that ended the run before there was a checkpoint, or nil if there was no such order.
func NoCheckpoint(s job.Spec, end *job.Order) (hint string) {
	switch {
	case s.CheckpointDir == "":
		return "checkpoint-dir says where the job writes its checkpoints; before-stop has the ranks write one before they are ended"
	case !s.BeforeStop.Asks():
		return "set --before-stop, as --before-stop sigusr1, for the ranks to write a checkpoint before they are ended"
	}
	if end != nil && end.Ended == job.EndedTimeLimit {
		return "the time limit of the run came before the ranks had written one: raise --timeout"
	}
	return "look how the ranks save when they are asked (before-stop); before-stop-wait gives them more time"
}

// Before returns the activity as it was some time earlier: it subtracts that time from the times in a.
func Before(a job.Activity, ago job.Duration) job.Activity {
	a.Quiet, a.Age = max(0, a.Quiet-ago), max(0, a.Age-ago)
	if a.Idle != nil {
		idle := max(0, *a.Idle-ago)
		a.Idle = &idle
	}
	return a
}

// Hosts returns the number of hosts that have ranks of a gang.
func Hosts(p job.Placement) int {
	all := map[string]bool{}
	for _, r := range p.Ranks {
		all[r.Host] = true
	}
	return len(all)
}
