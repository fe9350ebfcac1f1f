package vitals

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// window is the shortest time over which a rate of steps is measured. If steps are rare, the time is longer.
const window = 30 * time.Second

// Fold computes Vitals from pulses. The zero Fold is ready to use.
type Fold struct {
	attempt int
	ranks   map[int]*rank
	every   map[string]time.Duration // by host: the time until its next pulses
}

// rank is what a Fold remembers of a rank.
type rank struct {
	host         string
	last, before sample
	printed      time.Time // when its output last grew
	moved        time.Time // when its step last changed; zero if it never has
	// The rate counts the steps since marks[0]. When the window is over, marks[1] replaces marks[0].
	marks [2]mark
	seen  int // number of pulses
}

// sample is a pulse with two times: when it was taken, by the clock of its host, and when it arrived.
type sample struct {
	job.Pulse
	taken, arrived time.Time
}

// mark is a step and the time at which the rank reached it.
type mark struct {
	step int64
	at   time.Time
}

// Add adds the pulses of one host, which arrived at now. The pulses of a new attempt replace everything that
// was added before.
func (f *Fold) Add(now time.Time, attempt int, p job.Pulses) {
	if attempt != f.attempt || f.ranks == nil {
		*f = Fold{attempt: attempt, ranks: map[int]*rank{}, every: map[string]time.Duration{}}
	}
	f.every[p.Host] = time.Duration(p.Every)
	living := map[int]bool{}
	for _, pulse := range p.Ranks {
		living[pulse.Rank] = true
		r := f.ranks[pulse.Rank]
		if r == nil {
			r = &rank{host: p.Host, printed: now}
			f.ranks[pulse.Rank] = r
		}
		r.add(sample{pulse, p.Time, now})
	}
	maps.DeleteFunc(f.ranks, func(number int, r *rank) bool { return r.host == p.Host && !living[number] })
}

func (r *rank) add(s sample) {
	if r.seen++; r.seen == 1 {
		r.last = s
		r.marks = [2]mark{{step(s), s.arrived}, {step(s), s.arrived}}
		return
	}
	r.before, r.last = r.last, s
	if r.last.Output != r.before.Output {
		r.printed = s.arrived
	}
	if r.last.Moves == r.before.Moves {
		return
	}
	now := mark{step(s), s.arrived}
	switch {
	case r.moved.IsZero() || now.step < r.marks[1].step: // the rank's first step, or the rank has started to count again
		r.marks = [2]mark{now, now}
	case now.at.Sub(r.marks[1].at) >= window:
		r.marks = [2]mark{r.marks[1], now}
	}
	r.moved = s.arrived
}

func step(s sample) int64 {
	if s.Progress == nil {
		return 0
	}
	return s.Progress.At()
}

// rate returns the steps per minute. It returns 0 if they are not known. The rate falls while the next step
// is late.
func (r *rank) rate() float64 {
	from := r.marks[0]
	steps := step(r.last) - from.step
	took := r.moved.Sub(from.at)
	if steps <= 0 || took <= 0 {
		return 0
	}
	each := took / time.Duration(steps)
	if late := r.last.arrived.Sub(r.moved); late > 2*each+r.last.arrived.Sub(r.before.arrived) {
		took += late
	}
	return float64(steps) / took.Minutes()
}

// Vitals returns the figures at the time now.
func (f *Fold) Vitals(now time.Time) Vitals {
	v := Vitals{Attempt: f.attempt, At: now, Ranks: []Rank{}}
	for _, number := range slices.Sorted(maps.Keys(f.ranks)) {
		r := f.ranks[number]
		figures := r.figures(now)
		if time.Duration(figures.Age) > 3*f.every[r.host]+overdue {
			figures.Odd = append(figures.Odd, OddMissing)
		}
		v.Ranks = append(v.Ranks, figures)
	}
	v.Gang = sum(v.Ranks)
	v.Gang.still(v.Ranks)
	if g := &v.Gang; g.Total > g.Highest && g.Highest >= 0 && g.Rate > 0 {
		g.Left = job.Duration(float64(g.Total-g.Highest) / g.Rate * float64(time.Minute))
	}
	return v
}

func (r *rank) figures(now time.Time) Rank {
	p := r.last.Pulse
	out := Rank{
		Rank: p.Rank, Host: r.host, PID: p.PID, State: p.State, Phase: p.Phase, Progress: p.Progress,
		Age: between(r.last.arrived, now), Silent: between(r.printed, r.last.arrived), Rate: rounded(r.rate()),
		Use: Use{RSS: p.RSS, Processes: p.Processes, Stuck: p.Stuck, Zombies: p.Zombies, GPU: p.GPU},
	}
	if p.Progress != nil {
		since := cmp.Or(r.moved, r.marks[0].at)
		idle := between(since, r.last.arrived)
		out.Idle = &idle
	}
	if took := r.last.taken.Sub(r.before.taken); r.seen > 1 && took > 0 {
		used := rounded(100 * max(0, time.Duration(p.CPU-r.before.CPU)).Seconds() / took.Seconds())
		out.CPU = &used
		out.Read = math.Round(float64(max(0, p.Read-r.before.Read)) / took.Seconds())
		out.Written = math.Round(float64(max(0, p.Written-r.before.Written)) / took.Seconds())
	}
	return out
}

// between returns the time from one moment to another in whole milliseconds.
func between(from, to time.Time) job.Duration {
	return job.Duration(to.Sub(from).Round(time.Millisecond))
}

// rounded rounds a figure to two decimals.
func rounded(figure float64) float64 { return math.Round(100*figure) / 100 }
