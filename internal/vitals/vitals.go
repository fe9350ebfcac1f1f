// Package vitals computes figures about the ranks of a gang from their pulses: how fast they make steps, how
// long they have printed nothing, and what they use. It has no effects.
package vitals

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Vitals are the figures of a gang at one moment. Their JSON is the live file of a run.
type Vitals struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"` // by the controller's clock
	// Every is the time until the figures are computed again.
	Every job.Duration `json:"every"`
	Gang  Gang         `json:"gang"`
	Ranks []Rank       `json:"ranks"` // in the order of their numbers
}

// Gang has the figures of all ranks together.
type Gang struct {
	// Lowest and Highest are the lowest and the highest step of a rank. They are -1 if no rank has reported a
	// step.
	Lowest  int64 `json:"lowest_step"`
	Highest int64 `json:"highest_step"`
	Total   int64 `json:"total"` // steps of the job; 0 if that is not known
	// ByEpoch is true if the steps are epochs.
	ByEpoch bool `json:"by_epoch,omitempty"`
	// Rate is the median of the ranks' steps per minute; 0 if unknown, or if the gang stands still.
	Rate float64 `json:"steps_per_minute"`
	// Still is how long no rank has made a step, if that is far longer than the ranks' usual steps
	// take; 0 otherwise.
	Still job.Duration `json:"still,omitempty"`
	// Left is the time until Total is reached at that rate; 0 if that is not known.
	Left job.Duration `json:"left,omitempty"`
	// CPU is the CPU time that all ranks together use, in percent of one core. RSS is the memory of all ranks
	// together, in bytes.
	CPU float64 `json:"cpu"`
	RSS int64   `json:"rss"`
	// Odd are the ranks that differ from the others.
	Odd []int `json:"odd"`
}

// Rank has the figures of one rank, as of its last pulse.
type Rank struct {
	Rank  int              `json:"rank"`
	Host  string           `json:"host"`
	PID   int              `json:"pid"` // the process that does the rank's work
	State job.ProcessState `json:"state"`
	Phase job.RankPhase    `json:"phase,omitempty"`
	// Age is the time from the rank's last pulse to Vitals.At. Hosts with many ranks send pulses less
	// often.
	Age job.Duration `json:"age"`
	// Progress is the last progress that the rank has reported. It is nil if there is none.
	Progress *job.Progress `json:"progress,omitempty"`
	// Silent is the time without output of the rank before its last pulse. Idle is the time without a new
	// step before its last pulse; it is nil if the rank has reported no step. Both begin at the rank's first
	// pulse at the earliest.
	Silent job.Duration  `json:"silent"`
	Idle   *job.Duration `json:"idle,omitempty"`
	// Rate is the number of steps per minute. It is 0 if it is not known.
	Rate float64 `json:"steps_per_minute,omitempty"`
	Use
	// Odd has the respects in which the rank differs from the others.
	Odd []Oddity `json:"odd,omitempty"`
}

// Use is what the processes of a rank use.
type Use struct {
	// CPU is the CPU time between the last two pulses, in percent of one core. It is nil before the second
	// pulse.
	CPU *float64 `json:"cpu,omitempty"`
	RSS int64    `json:"rss"` // bytes
	// Read and Written are bytes per second between the last two pulses.
	Read      float64 `json:"read"`
	Written   float64 `json:"written"`
	Processes int     `json:"processes"`
	Stuck     int     `json:"stuck,omitempty"` // processes in an uninterruptible sleep
	Zombies   int     `json:"zombies,omitempty"`
	// GPU is nil if the load of the rank's GPUs is not known.
	GPU *job.GPUPulse `json:"gpu,omitempty"`
}

// Oddity is a respect in which a rank differs from the others.
type Oddity string

// The oddities of ranks.
const (
	OddState   Oddity = "state"   // it is stopped, traced, a zombie, or waits in the kernel
	OddStep    Oddity = "step"    // its step is behind those of the others
	OddCPU     Oddity = "cpu"     // it uses far less CPU time than most, or far more
	OddMemory  Oddity = "rss"     // it uses far more memory than most
	OddGPU     Oddity = "gpu"     // its GPU is idle while most are not
	OddLoss    Oddity = "loss"    // its loss is NaN or infinite
	OddMissing Oddity = "missing" // its host no longer sends pulses
)

// Is reports whether the rank differs from the others in a respect.
func (r Rank) Is(o Oddity) bool { return slices.Contains(r.Odd, o) }

// Step returns the last step of the rank. It returns -1 if the rank has reported none.
func (r Rank) Step() int64 {
	if r.Progress == nil {
		return -1
	}
	return r.Progress.At()
}

// Of returns the figures of a rank. It returns nil if there are none.
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

// With returns v. If earlier is of the same attempt, With adds the ranks that only earlier has. These ranks have ended
// since.
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

// Age returns how old the figures are at the time now. It is never negative, even if the clocks of machines differ.
func (v *Vitals) Age(now time.Time) time.Duration { return max(0, now.Sub(v.At)) }

// Old reports whether newer figures should have replaced these by now.
func (v *Vitals) Old(now time.Time) bool {
	return v.Age(now) > 3*time.Duration(v.Every)+overdue
}

// overdue is how late new figures may be. Pulses of busy hosts are late.
const overdue = 10 * time.Second
