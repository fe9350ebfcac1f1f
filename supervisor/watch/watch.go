// Package watch finds out from the pulses of a gang's ranks whether the gang hangs, which rank holds it up, and
// which ranks are slower than the others. It has no side effects, and does not ask for the time: its caller
// passes the pulses and their time.
package watch

import (
	"maps"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Watch decides whether a gang hangs. It counts only the time during which it gets pulses from every
// host. So the time during which a host or gangrun itself is suspended does not count.
type Watch struct {
	timeout time.Duration
	learnt  Learnt

	clock   time.Duration
	arrived time.Time // when the last pulses arrived
	begun   time.Time // when the first pulses arrived
	hosts   map[string]*host
	ranks   map[int]*rank
	ended   int // number of ranks that have exited

	signs    map[job.LifeSign]*sign
	progress sign // steps and heartbeats; in a job without both, output
	weak     sign // signs that a hung gang may also show for a while
	input    sign // a rank waits for its standard input
	changed  sign // a rank was started or has ended, or has passed MPI_Init or a barrier of MPI
	doubts   doubts
	steps    int64 // the largest number of steps and heartbeats of a rank since the first pulse
}

// Learnt has the longest times without signs of progress in earlier attempts of a run.
type Learnt struct {
	Start   time.Duration // from the first pulse to the first progress
	Longest time.Duration // between two signs of progress
}

// host is what a Watch remembers of a host.
type host struct {
	arrived time.Time
	every   time.Duration
}

// rank is what a Watch remembers of a rank.
type rank struct {
	host     string
	last     job.Pulse
	at       time.Time     // when last was taken, by the clock of the host
	marked   time.Duration // the Watch's clock at the rank's first pulse after the last progress of the gang
	spent    job.Duration  // the CPU time of the rank at that pulse
	pulses   int           // number of pulses since marked
	running  int           // how many of these found the rank running or waiting for a CPU
	state    job.ProcessState
	stateFor time.Duration // the Watch's clock when the rank entered its present state
	raised   time.Duration // the Watch's clock when an exception became the last output of the rank
	ended    bool
}

// sign records when one kind of sign of life was seen, by the Watch's clock.
type sign struct {
	moves       int
	first, last time.Duration
	longest     time.Duration // the longest time between two signs
}

func (s *sign) move(clock time.Duration) {
	if s.moves == 0 {
		s.first = clock
	} else {
		s.longest = max(s.longest, clock-s.last)
	}
	s.moves, s.last = s.moves+1, clock
}

// New returns a Watch for a gang. The gang counts as hung if it makes no progress for timeout, or for longer if
// its signs of progress have come rarely before. If timeout is 0 or less, no gang counts as hung. learnt comes
// from the Watch of the attempt before.
func New(timeout time.Duration, learnt Learnt) *Watch {
	w := &Watch{timeout: timeout, learnt: learnt, hosts: map[string]*host{}, ranks: map[int]*rank{}, signs: map[job.LifeSign]*sign{}}
	for _, s := range []job.LifeSign{job.SignSteps, job.SignBeats, job.SignOutput, job.SignIO, job.SignFaults, job.SignCPU, job.SignGPU} {
		w.signs[s] = &sign{}
	}
	return w
}

// Learnt returns the Learnt for the Watch of the next attempt.
func (w *Watch) Learnt() Learnt {
	l := w.learnt
	l.Longest = max(l.Longest, w.progress.longest)
	if w.progress.moves > 0 {
		l.Start = max(l.Start, w.progress.first)
	}
	return l
}

// Exit records that a rank has ended.
func (w *Watch) Exit(number int) {
	r := w.rank(number)
	if !r.ended {
		r.ended = true
		w.ended++
		w.changed.move(w.clock)
	}
}

func (w *Watch) rank(number int) *rank {
	r := w.ranks[number]
	if r == nil {
		r = &rank{}
		w.ranks[number] = r
	}
	return r
}

// living returns the numbers of the ranks that have not ended, in order.
func (w *Watch) living() (all []int) {
	for _, number := range slices.Sorted(maps.Keys(w.ranks)) {
		if !w.ranks[number].ended {
			all = append(all, number)
		}
	}
	return all
}

// stale is the number of periods by which a host's pulses may be late, in addition to slack, before the Watch's
// clock waits for them.
const stale = 3

// slack is the time by which a message may be late.
const slack = 2 * time.Second

// Add adds the pulses of a host, which arrived at now.
func (w *Watch) Add(p job.Pulses, now time.Time) {
	if w.begun.IsZero() {
		w.begun, w.arrived = now, now
	}
	h := w.hosts[p.Host]
	if h == nil {
		h = &host{}
		w.hosts[p.Host] = h
	}
	h.arrived, h.every = now, time.Duration(p.Every)
	if w.fresh(now) {
		w.clock += min(now.Sub(w.arrived), h.every+slack)
	}
	w.arrived = now
	for _, pulse := range p.Ranks {
		w.add(p, pulse)
	}
}

// fresh reports whether the pulses of all hosts with running ranks are up to date.
func (w *Watch) fresh(now time.Time) bool {
	for _, r := range w.ranks {
		if h := w.hosts[r.host]; !r.ended && h != nil && now.Sub(h.arrived) > stale*h.every+slack {
			return false
		}
	}
	return true
}

// The smallest changes between two pulses that count as signs of life. A rank that waits for others stays below
// them, even if it waits in a loop.
const (
	leastRead   = 64 << 10 // bytes
	leastWrite  = 4 << 10
	leastFaults = 256
	leastCPU    = 0.05 // share of a core; a rank that waits for a CPU may use less
)

// add adds the pulse of a rank.
func (w *Watch) add(from job.Pulses, p job.Pulse) {
	r := w.rank(p.Rank)
	before, first := r.last, r.host == ""
	span := from.Time.Sub(r.at)
	r.host, r.last, r.at = from.Host, p, from.Time
	if first || r.state != p.State {
		r.state, r.stateFor = p.State, w.clock
	}
	if p.Raised && p.Output > before.Output && (!before.Raised || w.clock-r.raised >= raisedLimit) { // it may be another exception
		w.doubts.fall, w.doubts.every = doubt{}, 0
	}
	if !p.Raised || !before.Raised || p.Output > before.Output {
		r.raised = w.clock
	}
	if p.Stdin {
		w.input.move(w.clock)
	}
	if first { // what the rank did before its first pulse counts, but it is not known when it did it
		before.Read, before.Written, before.Faults, before.CPU = p.Read, p.Written, p.Faults, p.CPU
	}
	moved := map[job.LifeSign]bool{
		job.SignSteps:  p.Moves > before.Moves,
		job.SignBeats:  p.Beats > before.Beats,
		job.SignOutput: p.Output > before.Output,
		job.SignIO:     p.Read-before.Read >= leastRead || p.Written-before.Written-(p.Output-before.Output) >= leastWrite,
		job.SignFaults: p.Faults-before.Faults >= leastFaults,
		job.SignCPU:    p.State == job.ProcessRunning || span > 0 && float64(p.CPU-before.CPU) >= leastCPU*float64(span),
		job.SignGPU:    p.GPU != nil && p.GPU.Memory > 0,
	}
	for s, yes := range moved {
		if yes {
			w.signs[s].move(w.clock)
		}
	}
	// A rank that reads or writes much is in the kernel in nearly every pulse, but each wait there is short. If the main
	// thread of a rank has ended, its other threads may still work.
	if (p.State == job.ProcessDisk || p.State == job.ProcessZombie) && (moved[job.SignSteps] || moved[job.SignIO] || moved[job.SignFaults]) {
		r.stateFor = w.clock
	}
	steps := moved[job.SignSteps] || moved[job.SignBeats]
	w.steps = max(w.steps, p.Moves+p.Beats)
	stepping := w.stepping()
	if steps || moved[job.SignOutput] && !stepping {
		w.progress.move(w.clock)
	}
	if first || before.Phase != p.Phase {
		w.changed.move(w.clock)
	}
	if first || r.marked < w.progress.last {
		r.marked, r.spent, r.pulses, r.running = w.clock, p.CPU, 0, 0
	}
	r.pulses++
	if p.State == job.ProcessRunning {
		r.running++
	}
	if moved[job.SignIO] || moved[job.SignFaults] || moved[job.SignGPU] || moved[job.SignOutput] && stepping {
		w.weak.move(w.clock)
	}
}

// silent returns the time since the last progress.
func (w *Watch) silent() time.Duration {
	return w.clock - max(w.progress.last, w.input.last, w.changed.last)
}

// load returns two figures about a rank since the last progress of the gang: the share of a core that it has
// used, and the share of its pulses that found it running.
func (w *Watch) load(r *rank) (cpu, running float64) {
	if w.clock <= r.marked {
		return 0, 0
	}
	return float64(r.last.CPU-r.spent) / float64(w.clock-r.marked), float64(r.running) / float64(r.pulses)
}

// busy reports whether a rank has computed, or waited for a CPU, since the last progress of the gang.
func (w *Watch) busy(r *rank) bool {
	cpu, running := w.load(r)
	return cpu >= leastCPU || running >= 0.5
}

// asleep reports whether a rank has slept since the last progress of the gang.
func (w *Watch) asleep(r *rank) bool {
	cpu, running := w.load(r)
	return cpu < leastCPU/5 && running <= 0.2
}

// leastSteps is the number of steps or heartbeats after which progress is measured by them alone.
const leastSteps = 3

// stepping reports whether progress is measured by steps or heartbeats.
func (w *Watch) stepping() bool {
	return w.steps >= leastSteps
}
