// Package retry decides what to do after a failed attempt: whether the run makes another one, after which wait,
// from which checkpoint and without which hosts and GPUs. It has no clock and touches nothing: for the same history,
// it decides the same.
package retry

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// The back-off is how long a run waits before a restart; a random part is added. The back-off is BackoffBase at
// first, doubles with each further failure without progress, and is at most BackoffCap.
const (
	BackoffBase = time.Second
	BackoffCap  = 2 * time.Minute
	// BackoffPort is the back-off after an attempt that failed because a port was in use. It is
	// short, because the next attempt uses another port.
	BackoffPort = 200 * time.Millisecond
)

// Policy decides what to do after a failed attempt. A Policy does not change: for the same history, it returns
// the same verdict.
//
// Two limits bound the restarts. Progress resets both.
//
//   - The first limit allows Retries restarts in a row without progress. It does not count
//     preemptions.
//   - The second limit allows one restart for the same cause with the same artefact, such as a file,
//     port, library, GPU or host. It does not apply to a cause without an artefact, nor to a
//     preemption.
//
// If the action is "once", the second limit is stricter: it allows one restart for the same cause, with whatever
// artefact, and counts preemptions too.
//
// If an attempt failed to load its checkpoint, Avoided says from which checkpoints the next attempt may start.
//
// If two attempts in a row fail with the same signature at the same step, and nothing was saved in
// between, the failure is deterministic, and Decide allows no restart, whatever the action is. A preemption is
// never deterministic.
//
// If an attempt may have failed to load its checkpoint, only the first limit applies to the first restart from an
// earlier checkpoint.
type Policy struct {
	// Retries is the largest number of restarts in a row without progress.
	Retries int
	// Actions has the actions of those categories for which the job does not want the default action.
	Actions map[job.Category]job.Action
	// Checkpoints is true if the job has a checkpoint directory. An attempt then has made progress if it has
	// written a newer checkpoint; a higher step does not count. If Checkpoints is false, an attempt has made
	// progress if it has reached a higher step than all earlier attempts.
	Checkpoints bool
	// Elsewhere is true if the job could use another host.
	Elsewhere bool
	// Diverge is how often a run may go back to an earlier checkpoint because its model has diverged.
	Diverge int
	// Deadline is when the run reaches its time limit; zero means that the run has none. Decide allows no
	// restart after Deadline.
	Deadline time.Time
}

// Past is an attempt that has failed.
type Past struct {
	Cause job.Cause
	// From is the newest good checkpoint of this run before the attempt, and Saved the newest after the
	// attempt. Each is nil if there was none.
	From, Saved *job.Checkpoint
	// Resumed is the checkpoint from which the attempt started, which may differ from From. Next is the
	// checkpoint from which the next attempt would start. Nil means the beginning of the job.
	Resumed, Next *job.Checkpoint
	// Step is the last step that a rank of the attempt printed, or -1 if none was printed.
	Step int64
	// Devices are the names (see job.DeviceID) of the GPUs of the rank that failed first.
	Devices []string
	// Spoilt has checkpoints from which no later attempt may start, because the model had diverged before they
	// were written.
	Spoilt []job.Checkpoint
}

// Action returns the action for a cause. If Actions has an action for the category of the cause, Action returns
// that action. Otherwise it returns the action that the diagnosis recommends or, if the diagnosis recommends
// none, the default action of the category.
func (p Policy) Action(c job.Cause) job.Action {
	if a, ok := p.Actions[CategoryOf(c)]; ok {
		return a
	}
	if slices.Contains(job.Actions(), c.Retry) {
		return c.Retry
	}
	return CategoryOf(c).Action()
}

// Decide returns the verdict on latest, the attempt that has just failed. history has the attempts
// before it.
func (p Policy) Decide(history []Past, latest Past, now time.Time) job.Verdict {
	what, action := CategoryOf(latest.Cause), p.Action(latest.Cause)
	if what == job.ModelDiverged && p.Diverge > 0 {
		return p.AfterDivergence(history, latest, now)
	}
	rescues := p.rescues(history, latest)
	if action == job.RetryNever && rescues {
		action = job.RetryOnce
	}
	if action == job.RetryNever {
		if what == job.StoppedEarly {
			return Stop("stopped early: going on would be waste")
		}
		if p.Actions[what] == job.RetryNever && what.Action() != job.RetryNever {
			return Stop("the job's policy never retries %s", what)
		}
		if what.Action() != job.RetryNever {
			return Stop("a retry cannot fix %s (%s)", what, latest.Cause.Signature)
		}
		return Stop("a retry cannot fix %s", what)
	}
	if exhausted(history, latest) {
		return Stop("the job failed to start from every checkpoint that there is")
	}
	row := p.row(history, latest)
	free := !what.Charged()
	if !rescues && !free && deterministic(row, latest) {
		v := Stop("the same %s again at step %d: a retry cannot fix it", signature(latest.Cause), latest.Step)
		v.Deterministic = true
		return v
	}
	if !rescues && (action == job.RetryOnce || latest.Cause.Artefact != "" && !free) {
		if slices.ContainsFunc(row, func(before Past) bool { return same(before.Cause, latest.Cause, action) }) {
			return Stop("the same %s again without progress: a retry cannot fix it", signature(latest.Cause))
		}
	}
	used := 0
	for _, before := range row {
		if CategoryOf(before.Cause).Charged() {
			used++
		}
	}
	if !free && used >= p.Retries {
		return spent("%s", spentReason(p.Retries))
	}
	v := job.Verdict{Action: job.Restart, Wait: job.Duration(backoff(what, len(row)))}
	if !p.Deadline.IsZero() && !now.Add(time.Duration(v.Wait)).Before(p.Deadline) {
		return spent("%s may pass, but the time limit comes before a restart", what)
	}
	how := "restarting"
	switch action {
	case job.RetryOnce:
		how = "restarting once"
	case job.RetryElsewhere:
		v.Exclude = p.exclude(latest)
		how = "restarting" + Without(v.Exclude)
		if v.Exclude.Empty() && !p.Elsewhere && latest.Cause.Host != "" {
			how = "there is no other host, restarting on the same one"
		}
	}
	why := "may pass"
	if from := instead(latest); from != "" {
		why = "may come from " + filepath.Base(latest.Resumed.Path)
		how += " from " + from
	}
	if free {
		v.Reason = fmt.Sprintf("%s %s: %s (not charged to the retries)", what, why, how)
	} else {
		v.Reason = fmt.Sprintf("%s %s: %s (restart %d of %d)", what, why, how, used+1, p.Retries)
	}
	return v
}

// row returns the earlier attempts, beginning with the last one that made progress. The limits count the
// restarts after these attempts. row returns nothing if the last attempt itself made progress.
func (p Policy) row(earlier []Past, last Past) []Past {
	if p.progressed(earlier, last) {
		return nil
	}
	for i := len(earlier) - 1; i > 0; i-- {
		if p.progressed(earlier[:i], earlier[i]) {
			return earlier[i:]
		}
	}
	return earlier
}

// progressed reports whether an attempt got further than those before it.
func (p Policy) progressed(earlier []Past, last Past) bool {
	if p.Checkpoints {
		return Newer(last.From, last.Saved)
	}
	best := int64(-1)
	for _, before := range earlier {
		best = max(best, before.Step)
	}
	return last.Step > best
}

// Newer reports whether checkpoint b is further than a: by their steps if both names have one,
// otherwise by their times.
func Newer(a, b *job.Checkpoint) bool {
	switch {
	case b == nil:
		return false
	case a == nil:
		return true
	case a.Step >= 0 && b.Step >= 0:
		return b.Step > a.Step
	}
	return b.Time.After(a.Time)
}

// same reports whether two causes are the same root cause. The artefacts must be the same too,
// unless the action allows only one retry.
func same(a, b job.Cause, action job.Action) bool {
	return CategoryOf(a) == CategoryOf(b) && a.Signature == b.Signature &&
		(action == job.RetryOnce || a.Artefact == b.Artefact)
}

// deterministic reports whether the attempt before the last one failed with the same signature at
// the same step. row has the attempts without progress before the last one.
func deterministic(row []Past, last Past) bool {
	if len(row) == 0 || last.Step < 0 {
		return false
	}
	before := row[len(row)-1]
	return before.Step == last.Step && same(before.Cause, last.Cause, job.RetryOnce)
}

// exclude returns what caused the failure: the GPU or, if no GPU is at fault and there is another
// host, the host.
func (p Policy) exclude(last Past) job.Excluded {
	gpu := last.Cause.Artefact
	switch CategoryOf(last.Cause) {
	case job.CUDAFailure, job.CUDAInit, job.GPUHardware:
		if job.IsUUID(gpu) {
			return job.Excluded{Devices: []string{gpu}}
		}
		if i := slices.IndexFunc(last.Devices, func(d string) bool { return gpu != "" && !job.IsUUID(d) && strings.HasSuffix(d, "/"+gpu) }); i >= 0 {
			return job.Excluded{Devices: []string{last.Devices[i]}}
		}
		if len(last.Devices) > 0 {
			return job.Excluded{Devices: slices.Clone(last.Devices)}
		}
	}
	if p.Elsewhere && last.Cause.Host != "" {
		return job.Excluded{Hosts: []string{last.Cause.Host}}
	}
	return job.Excluded{}
}

func backoff(what job.Category, failuresBefore int) time.Duration {
	if what == job.PortInUse {
		return BackoffPort
	}
	wait := BackoffBase
	for range failuresBefore {
		if wait >= BackoffCap {
			break
		}
		wait *= 2
	}
	return min(wait, BackoffCap)
}

// CategoryOf returns the category of a cause. It is job.Unknown if no cause was found.
func CategoryOf(c job.Cause) job.Category {
	if c.Category == "" {
		return job.Unknown
	}
	return c.Category
}

func signature(c job.Cause) string {
	if c.Signature == "" {
		return string(CategoryOf(c))
	}
	return c.Signature
}

// Stop returns the verdict that ends the run for this reason.
func Stop(format string, args ...any) job.Verdict {
	return job.Verdict{Action: job.Stop, Reason: fmt.Sprintf(format, args...)}
}

func spent(format string, args ...any) job.Verdict {
	v := Stop(format, args...)
	v.Budget = true
	return v
}

func spentReason(retries int) string {
	switch retries {
	case 0:
		return "no restarts are allowed (retries is 0)"
	case 1:
		return "1 restart without progress is spent"
	}
	return fmt.Sprintf("%d restarts without progress are spent", retries)
}

// Without returns " without h1, h2" for the hosts and GPUs that are excluded, and "" if there are none.
func Without(e job.Excluded) string {
	if e.Empty() {
		return ""
	}
	return " without " + strings.Join(append(slices.Clone(e.Hosts), e.Devices...), ", ")
}
