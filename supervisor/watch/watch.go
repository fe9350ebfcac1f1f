// Package watch judges by the signs of life of a gang's ranks whether the gang hangs, and which rank
// holds it up. It is pure: its caller brings the pulses and the time.
package watch

import (
	"maps"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Watch is what is known of the life of a gang. It has a clock of its own, which runs only while
// pulses of all hosts arrive: the time in which a host or gangrun itself is suspended counts for
// nothing.
type Watch struct {
	timeout time.Duration
	learnt  Learnt

	clock   time.Duration
	arrived time.Time // of the last pulses
	begun   time.Time // of the first pulses
	hosts   map[string]*host
	ranks   map[int]*rank
	ended   int // ranks that have exited

	signs    map[job.LifeSign]*sign
	progress sign // steps and heartbeats, or output where a job has neither
	weak     sign // signs that a hung gang may show for a while, too
	input    sign // a rank waits for its standard input
	changed  sign // a rank has been started or has ended, or has gone through MPI_Init or a barrier of MPI
	doubt    doubt
	steps    int64 // the most new steps and heartbeats that a rank has shown
}

// Learnt is what earlier attempts of a run have taught about its gaps.
type Learnt struct {
	Start   time.Duration // from the first pulse to the first progress
	Longest time.Duration // between two signs of progress
}

// host is what is known of a host.
type host struct {
	arrived time.Time
	every   time.Duration
}

// rank is what is known of a rank.
type rank struct {
	host     string
	last     job.Pulse
	at       time.Time     // of last, by the clock of the host
	marked   time.Duration // clock of its first pulse after the last progress of the gang
	spent    job.Duration  // the CPU time that it had used then
	pulses   int           // since then
	running  int           // of these, those that found it running, or waiting for a CPU
	state    job.ProcessState
	stateFor time.Duration // clock when it got into that state
	ended    bool
}

// sign is one kind of sign of life.
type sign struct {
	moves       int
	first, last time.Duration // clock
	longest     time.Duration // the longest time between two
}

func (s *sign) move(clock time.Duration) {
	if s.moves == 0 {
		s.first = clock
	} else {
		s.longest = max(s.longest, clock-s.last)
	}
	s.moves, s.last = s.moves+1, clock
}

// New returns the watch of a gang. timeout is the shortest time without progress that is a hang; if
// it is 0 or less, no gang hangs. learnt is what the watch of the attempt before has learnt.
func New(timeout time.Duration, learnt Learnt) *Watch {
	w := &Watch{timeout: timeout, learnt: learnt, hosts: map[string]*host{}, ranks: map[int]*rank{}, signs: map[job.LifeSign]*sign{}}
	for _, s := range []job.LifeSign{job.SignSteps, job.SignBeats, job.SignOutput, job.SignIO, job.SignFaults, job.SignCPU, job.SignGPU} {
		w.signs[s] = &sign{}
	}
	return w
}

// Learnt returns what a watch of the next attempt should know.
func (w *Watch) Learnt() Learnt {
	l := w.learnt
	l.Longest = max(l.Longest, w.progress.longest)
	if w.progress.moves > 0 {
		l.Start = max(l.Start, w.progress.first)
	}
	return l
}

// Exit notes that a rank has ended.
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

// stale is how many periods a host's pulses may be late before the clock waits for them.
const stale = 3

// slack is added to that: messages may be late by so much.
const slack = 2 * time.Second

// Add notes the pulses of a host, which have arrived at now.
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

// fresh reports whether the pulses of all hosts with living ranks are up to date.
func (w *Watch) fresh(now time.Time) bool {
	for _, r := range w.ranks {
		if h := w.hosts[r.host]; !r.ended && h != nil && now.Sub(h.arrived) > stale*h.every+slack {
			return false
		}
	}
	return true
}

// The least changes between two pulses that are signs of life. A rank that waits for others, even
// in a loop, stays below those of I/O and page faults.
const (
	leastRead   = 64 << 10 // bytes
	leastWrite  = 4 << 10
	leastFaults = 256
	leastCPU    = 0.05 // of a core; a rank that waits for a CPU uses less
)

// add notes the pulse of a rank.
func (w *Watch) add(from job.Pulses, p job.Pulse) {
	r := w.rank(p.Rank)
	before, first := r.last, r.host == ""
	span := from.Time.Sub(r.at)
	r.host, r.last, r.at = from.Host, p, from.Time
	if first || r.state != p.State {
		r.state, r.stateFor = p.State, w.clock
	}
	if p.Stdin {
		w.input.move(w.clock)
	}
	if first { // what was before the first pulse counts, but nobody knows when it was
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

// silent returns for how long there was no progress.
func (w *Watch) silent() time.Duration {
	return w.clock - max(w.progress.last, w.input.last, w.changed.last)
}

// load returns the share of a core that a rank has used since the last progress of the gang, and the
// share of the pulses that found it running.
func (w *Watch) load(r *rank) (cpu, running float64) {
	if w.clock <= r.marked {
		return 0, 0
	}
	return float64(r.last.CPU-r.spent) / float64(w.clock-r.marked), float64(r.running) / float64(r.pulses)
}

// busy reports whether a rank computes, or waits for a CPU, since the last progress of the gang.
func (w *Watch) busy(r *rank) bool {
	cpu, running := w.load(r)
	return cpu >= leastCPU || running >= 0.5
}

// asleep reports whether a rank has slept since the last progress of the gang.
func (w *Watch) asleep(r *rank) bool {
	cpu, running := w.load(r)
	return cpu < leastCPU/5 && running <= 0.2
}

// leastSteps is how many steps, or heartbeats, make a job one whose steps tell its progress.
const leastSteps = 3

// stepping reports whether the job tells its progress by steps or heartbeats.
func (w *Watch) stepping() bool {
	return w.steps >= leastSteps
}
