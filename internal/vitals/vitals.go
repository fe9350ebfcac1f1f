// Package vitals computes from the pulses of a gang what people want to know of its ranks: how fast
// they go, how long they have been silent, what they use. It is pure.
package vitals

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Vitals are the signs of life of a gang at one moment. Their JSON is the live file of a run.
type Vitals struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"` // by the controller's clock
	// Every is the time until they are computed again.
	Every job.Duration `json:"every"`
	Gang  Gang         `json:"gang"`
	Ranks []Rank       `json:"ranks"` // in the order of their numbers
}

// Gang sums up the ranks.
type Gang struct {
	// Lowest and Highest are the steps of the rank that is behind all others, and of the one that is
	// ahead. They are -1 if no rank has reported a step.
	Lowest  int64 `json:"lowest_step"`
	Highest int64 `json:"highest_step"`
	Total   int64 `json:"total"` // steps of the job; 0 if unknown
	// ByEpoch is true if the steps are epochs.
	ByEpoch bool `json:"by_epoch,omitempty"`
	// Rate is the median of the ranks' steps per minute; 0 if unknown, or if the gang stands still.
	Rate float64 `json:"steps_per_minute"`
	// Still is how long no rank has made a step, if that is far longer than the ranks' usual steps
	// take; 0 otherwise.
	Still job.Duration `json:"still,omitempty"`
	// Left is the time until Total is reached at that rate; 0 if that is not known.
	Left job.Duration `json:"left,omitempty"`
	// CPU and RSS are sums over the ranks: percent of a core, and bytes.
	CPU float64 `json:"cpu"`
	RSS int64   `json:"rss"`
	// Odd are the ranks that differ from the others.
	Odd []int `json:"odd"`
}

// Rank is what is known of the life of one rank, by its last pulse.
type Rank struct {
	Rank  int              `json:"rank"`
	Host  string           `json:"host"`
	PID   int              `json:"pid"` // of the process that does the work
	State job.ProcessState `json:"state"`
	Phase job.RankPhase    `json:"phase,omitempty"`
	// Age is the time from the rank's last pulse to Vitals.At. Hosts with many ranks send pulses less
	// often.
	Age job.Duration `json:"age"`
	// Progress is the last that the rank has reported; nil if it has reported none.
	Progress *job.Progress `json:"progress,omitempty"`
	// Silent is how long the rank had printed nothing at its last pulse. Idle is how long its step had
	// not changed; nil if it has reported none. Both count from the first pulse if that was later.
	Silent job.Duration  `json:"silent"`
	Idle   *job.Duration `json:"idle,omitempty"`
	// Rate is how many steps per minute the rank makes; 0 if unknown.
	Rate float64 `json:"steps_per_minute,omitempty"`
	Use
	// Odd says in which respects the rank differs from the others.
	Odd []Oddity `json:"odd,omitempty"`
}

// Use is what a rank with all its processes uses.
type Use struct {
	// CPU is in percent of a core, between the last two pulses; nil before the second.
	CPU *float64 `json:"cpu,omitempty"`
	RSS int64    `json:"rss"` // bytes
	// Read and Written are bytes per second between the last two pulses.
	Read      float64 `json:"read"`
	Written   float64 `json:"written"`
	Processes int     `json:"processes"`
	Stuck     int     `json:"stuck,omitempty"` // processes in an uninterruptible sleep
	Zombies   int     `json:"zombies,omitempty"`
	// GPU is nil if the rank has no GPU whose load is known.
	GPU *job.GPUPulse `json:"gpu,omitempty"`
}

// Oddity is a respect in which a rank differs from the others.
type Oddity string

// The oddities of ranks.
const (
	OddState   Oddity = "state"   // it is stopped, traced, a zombie, or waits in the kernel
	OddStep    Oddity = "step"    // it is behind
	OddCPU     Oddity = "cpu"     // it uses far less CPU time than most, or far more
	OddMemory  Oddity = "rss"     // it uses far more memory than most
	OddGPU     Oddity = "gpu"     // its GPU is idle while most are not
	OddLoss    Oddity = "loss"    // its loss is NaN or infinite
	OddMissing Oddity = "missing" // its host sends no pulses any more
)

// Is reports whether the rank differs from the others in a respect.
func (r Rank) Is(o Oddity) bool { return slices.Contains(r.Odd, o) }

// Step returns the last step of the rank, -1 if it has reported none.
func (r Rank) Step() int64 {
	if r.Progress == nil {
		return -1
	}
	return r.Progress.At()
}

// Of returns what is known of a rank, nil if nothing is.
func (v *Vitals) Of(rank int) *Rank {
	if v == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(v.Ranks, rank, func(r Rank, n int) int { return r.Rank - n })
	if !ok {
		return nil
	}
	return &v.Ranks[i]
}

// With returns the vitals together with those ranks of earlier vitals of the same attempt that are missing in them, as they
// have ended.
func (v Vitals) With(earlier Vitals) Vitals {
	if v.Attempt != earlier.Attempt {
		return v
	}
	ranks := slices.Clone(v.Ranks)
	for _, r := range earlier.Ranks {
		if v.Of(r.Rank) == nil {
			ranks = append(ranks, r)
		}
	}
	slices.SortFunc(ranks, func(a, b Rank) int { return a.Rank - b.Rank })
	v.Ranks = ranks
	return v
}

// Age returns how old the figures are at the time now. Clocks of machines differ, so that it is at
// least 0.
func (v *Vitals) Age(now time.Time) time.Duration { return max(0, now.Sub(v.At)) }

// Old reports whether the figures should have been replaced by the time now.
func (v *Vitals) Old(now time.Time) bool {
	return v.Age(now) > 3*time.Duration(v.Every)+overdue
}

// overdue is how late figures may be: pulses are delayed where hosts are busy.
const overdue = 10 * time.Second
