package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

const (
	// A silence is a hang if it lasts gapFactor times as long as the longest gap between two signs of progress
	// so far. An evaluation or a checkpoint lengthens this gap.
	gapFactor = 5
	// A gang may take startFactor times as long until its first step, because it compiles, reads its data and
	// waits for slow hosts.
	startFactor = 2
	// A gang that makes steps also hangs if it has made none for weakFactor times the limit, even if it shows
	// weak signs of life. A gang that hangs may show such signs, for instance if a thread logs that it waits.
	weakFactor = 6
	// leastOutput is the number of times that a job without steps must have printed something, over at least
	// the limit, before its silence alone is a hang.
	leastOutput = 10
	// leastWork is the CPU time that a rank must have used before the gang counts as having worked.
	leastWork = 100 * time.Millisecond
)

// Hang returns the report of a hang if the gang hangs, and otherwise nil.
func (w *Watch) Hang() *job.HangReport {
	if w.timeout <= 0 || w.ended == len(w.ranks) {
		return nil
	}
	if h := w.stuck(); h != nil {
		return h
	}
	stage, limit := w.stage()
	var (
		silent  = w.silent()
		weak    = w.clock - w.weak.last
		asleep  = w.clock - w.signs[job.SignCPU].last
		started = w.progress.moves > 0 || stage == job.HangInit || w.worked()
	)
	switch {
	case silent <= limit || !started:
		return nil
	case asleep > limit && weak > limit: // nothing happens at all
	case stage == job.HangInit && weak > limit:
	case weak > limit && w.rhythm(limit): // the ranks burn CPU time, but in vain
	case w.stepping() && silent > weakFactor*limit:
	default:
		return nil
	}
	odd := stacktree.Odd(nil, w.pulses())
	return &job.HangReport{
		Since: w.arrived.Add(-silent), Limit: job.Duration(limit), Stage: stage, Signs: w.shown(silent),
		Ranks: odd.Ranks, Why: odd.Why, Confidence: odd.Confidence, Step: w.step(),
	}
}

// stuck finds ranks that cannot continue, whatever the other ranks do.
func (w *Watch) stuck() *job.HangReport {
	states := map[int]job.ProcessState{}
	since := w.clock
	for number, r := range w.ranks {
		if !r.ended && halted(r.state) && w.clock-r.stateFor > w.timeout {
			states[number] = r.state
			since = min(since, r.stateFor)
		}
	}
	if len(states) == 0 {
		return nil
	}
	stage, _ := w.stage()
	return &job.HangReport{
		Since: w.arrived.Add(since - w.clock), Limit: job.Duration(w.timeout), Stage: stage, Signs: w.shown(w.clock - since),
		Ranks: slices.Sorted(maps.Keys(states)), Why: stacktree.Halted(states), Confidence: 0.95, Step: w.step(),
	}
}

// halted reports whether a process in a state cannot continue by itself.
func halted(s job.ProcessState) bool {
	switch s {
	case job.ProcessStopped, job.ProcessTraced, job.ProcessDisk, job.ProcessZombie:
		return true
	}
	return false
}

// stage returns what the gang is doing, and how long it may go on without progress.
func (w *Watch) stage() (job.HangStage, time.Duration) {
	limit := w.limit()
	switch {
	case w.ended > 0:
		return job.HangFinal, limit
	case w.initialising():
		return job.HangInit, startFactor * limit
	case w.progress.moves == 0 || !w.stepping() && !w.rhythm(limit):
		return job.HangStart, max(startFactor*limit, gapFactor*w.learnt.Start)
	case w.stepping():
		return job.HangStep, limit
	}
	return job.HangSilent, limit
}

// limit returns how long a gang may go on without progress once it has begun to work.
func (w *Watch) limit() time.Duration {
	return max(w.timeout, gapFactor*max(w.progress.longest, w.learnt.Longest))
}

// initialising reports whether ranks wait in MPI_Init for other ranks. It returns false for ranks that make
// steps, whatever their MPI library says.
func (w *Watch) initialising() bool {
	if w.stepping() {
		return false
	}
	waiting, others := 0, 0
	for _, r := range w.ranks {
		if r.last.Phase == job.PhaseInit {
			waiting++
		} else if r.last.Phase == job.PhaseUnknown {
			others++
		}
	}
	return waiting > 0 && waiting+others == len(w.ranks)
}

// worked reports whether a rank has used at least leastWork.
func (w *Watch) worked() bool {
	for _, r := range w.ranks {
		if time.Duration(r.last.CPU) >= leastWork {
			return true
		}
	}
	return false
}

// rhythm reports whether the job has reported its progress regularly.
func (w *Watch) rhythm(limit time.Duration) bool {
	out := w.signs[job.SignOutput]
	return w.stepping() || out.moves >= leastOutput && out.last-out.first >= limit
}

// shown returns the signs of life that the gang has shown before, but not during the time silent.
func (w *Watch) shown(silent time.Duration) (all []job.LifeSign) {
	for name, s := range w.signs {
		if s.moves > 0 && s.last <= w.clock-silent+slack {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b job.LifeSign) int { return strings.Compare(string(a), string(b)) })
	return all
}

// step returns the highest step that a rank has reported, or -1.
func (w *Watch) step() int64 {
	step := int64(-1)
	for _, r := range w.ranks {
		if p := r.last.Progress; p != nil {
			step = max(step, p.At())
		}
	}
	return step
}

// Still reports whether the gang still has made no progress since the hang h was found.
func (w *Watch) Still(h job.HangReport) bool {
	now := w.Hang()
	return now != nil && !now.Since.After(h.Since.Add(slack))
}

// Words says in words which progress is missing, and since when.
func Words(h job.HangReport, now time.Time) string {
	names := map[job.LifeSign]string{
		job.SignSteps: "no new step", job.SignBeats: "no heartbeat", job.SignOutput: "no output", job.SignIO: "nothing read or written",
		job.SignFaults: "no new memory", job.SignCPU: "no CPU time used", job.SignGPU: "no work on the GPUs",
	}
	var missing []string
	for _, s := range []job.LifeSign{job.SignSteps, job.SignBeats, job.SignOutput, job.SignCPU, job.SignGPU} {
		if slices.Contains(h.Signs, s) {
			missing = append(missing, names[s])
		}
	}
	what, step := text.And(missing), h.Step
	if len(missing) == 0 { // no rank has made a step yet, or the step is that of ranks that go on
		what, step = "no progress", -1
		if len(h.Ranks) > 0 {
			what += " of " + text.Ranks(h.Ranks)
		}
	}
	said := fmt.Sprintf("%s for %s", what, now.Sub(h.Since).Round(time.Second))
	if step >= 0 {
		said += fmt.Sprintf(" at step %d", step)
	}
	return said
}
