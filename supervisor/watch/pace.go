package watch

import (
	"fmt"
	"math"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// paces are the figures of a rank in one window.
type paces struct {
	steps   float64 // number of steps; 0 if the rank reports none
	need    float64 // share of the time in which the rank ran or waited for a CPU
	busy    float64 // need, and the share of the time in which it waited for files
	sending float64 // share of the time in which data was on its way to other hosts
	rate    float64 // bytes per second over its fastest connection; 0 if that is not known
	rtt     float64 // shortest round-trip time in seconds; 0 if that is not known
	clock   float64 // MHz of its GPU, if the GPU was busy
	cores   int
	lost    map[job.StragglerReason]float64 // shares of the time in which each reason held up the rank

	speed  float64 // share of the median of the others
	slow   bool
	reason job.StragglerReason
}

const (
	// Ranks are compared by their steps if the median number of steps is at least leastStepsOf.
	leastStepsOf = 10
	// A slow rank must be below the median of the others by spreadFactor of their standard deviations.
	spreadFactor = 3
	// A reason explains that a rank makes fewer steps only if it has cost leastLost of the time.
	leastLost = 0.1
	// leastFiles is the smallest number of pulses that must have found a rank waiting for files.
	leastFiles = 2
	// A rank whose free time is a smaller share counts as one with this share.
	least = 0.02
	// If the others run for less than crowded of the time in which they could, there are more processes than
	// CPUs. The time of waiting for a CPU is then no evidence, because a rank that waits for messages gives
	// up its CPU more often than one that works.
	crowded = 0.5
	// A rank that sleeps for more of the time than the others, by more than this share, does not hold them
	// up.
	idler = 0.1
	// A rank that works without a pause is busy for at least this share of the time.
	allBusy = 0.9
	// A line is slow if its rate is below this share of the rate of the others.
	slowLine = 0.4
	// A round-trip time is long if it is more than rttFactor times that of the others, and longer by more
	// than leastRTT seconds.
	rttFactor, leastRTT = 2, 1e-3
	// A host lacks memory if it waits for memory for at least this share of the time.
	stalled = 0.05
	// busyGPU is the utilization in percent above which a GPU should run at its full clock.
	busyGPU = 50
	// A rank has its CPUs for itself if it uses at least this share of their time.
	full = 0.9
)

// measure returns the figures of a rank that need no comparison.
func (r *peer) measure() paces {
	a, b := r.first.Delays, r.last.Delays
	elapsed := r.last.at.Sub(r.first.at)
	share := func(first, last job.Duration) float64 {
		return math.Max(0, float64(last-first)/float64(elapsed))
	}
	ran, waited := share(a.Ran, b.Ran), share(a.Waited, b.Waited)
	m := paces{need: math.Min(1, ran+waited), sending: math.Min(1, share(a.Sending, b.Sending)), cores: b.Cores, lost: map[job.StragglerReason]float64{}}
	if p := r.last.Progress; p != nil {
		m.steps = float64(p.At())
		if before := r.first.Progress; before != nil {
			m.steps = math.Max(0, m.steps-float64(before.At()))
		}
	}
	if ran+waited > 0 {
		cpu := m.need * waited / (ran + waited)
		quota := math.Min(cpu, share(a.Throttled, b.Throttled))
		m.lost[job.SlowQuota] = quota
		reason := job.SlowShared
		if b.Cores > 0 && ran >= full*float64(b.Cores) {
			reason = job.SlowCores
		}
		if quota < 1 {
			m.lost[reason] = (cpu - quota) / (1 - quota)
		}
	}
	reason := job.SlowDisk
	if (r.last.stall - r.first.stall).Seconds() >= stalled*elapsed.Seconds() {
		reason = job.SlowMemory
	}
	// Waiting for files takes at most the time that is left.
	if m.need = math.Min(1, ran+waited); r.files >= leastFiles && m.need < 1 {
		m.lost[reason] = (1 - m.need) * float64(r.files) / float64(r.idle)
	} else if r.files >= leastFiles { // the rank has several busy threads
		m.lost[reason] = float64(r.files) / float64(r.seen)
	}
	m.busy = math.Min(1, m.need+m.lost[reason])
	if r.sent > 0 {
		m.rate, m.rtt = r.rate/float64(r.sent), r.rtt/float64(r.sent)
	}
	if g := r.last.GPU; g != nil && g.Utilization >= busyGPU {
		m.clock = float64(g.SMClock)
	}
	return m
}

// of returns a figure of each rank except rank i. It omits figures that are not known.
func of(all []paces, i int, value func(paces) float64) (values []float64) {
	for j, m := range all {
		if v := value(m); j != i && v > 0 {
			values = append(values, v)
		}
	}
	return values
}

// median returns the median of values, and the standard deviation that follows from their median absolute
// deviation. Both are 0 if there are no values.
func median(values []float64) (middle, spread float64) {
	half := func(v []float64) float64 {
		slices.Sort(v)
		if n := len(v); n%2 == 1 {
			return v[n/2]
		} else if n > 0 {
			return (v[n/2-1] + v[n/2]) / 2
		}
		return 0
	}
	middle = half(values)
	off := make([]float64, len(values))
	for i, v := range values {
		off[i] = math.Abs(v - middle)
	}
	return middle, 1.4826 * half(off)
}

// compare computes the figures of each rank that need a comparison with the others.
func compare(all []paces) {
	for i := range all {
		all[i].link(all, i)
	}
	slow := 0
	for i := range all {
		all[i].judge(all, i)
		if all[i].slow {
			slow++
		}
	}
	for i := range all {
		all[i].slow = all[i].slow && 2*slow < len(all) // if half of the ranks are slow, the usual speed is not known
	}
}

// link computes how much of the time the network and the GPU have cost rank i.
func (m *paces) link(all []paces, i int) {
	if usual, _ := median(of(all, i, func(m paces) float64 { return m.rate })); m.rate > 0 && m.rate < slowLine*usual {
		m.lost[job.SlowNetwork] = m.sending * (1 - m.rate/usual)
	}
	if usual, _ := median(of(all, i, func(m paces) float64 { return m.rtt })); m.rtt > rttFactor*usual && m.rtt-usual > leastRTT && usual > 0 {
		m.lost[job.SlowNetwork] = math.Max(m.lost[job.SlowNetwork], m.sending*(1-usual/m.rtt))
	}
	if usual, _ := median(of(all, i, func(m paces) float64 { return m.clock })); usual > 0 && m.clock > 0 && m.clock < usual {
		m.lost[job.SlowThrottle] = 1 - m.clock/usual
	}
}

// judge decides whether rank i is slow, and why.
func (m *paces) judge(all []paces, i int) {
	certain := m.held(all, i)
	busy, _ := median(of(all, i, func(m paces) float64 { return m.busy }))
	m.slow = certain && m.speed < slowSpeed && (m.reason == job.SlowNetwork || m.busy >= busy-idler)
	known := m.speed <= 1-leastLost
	if steps, spread := median(of(all, i, func(m paces) float64 { return m.steps })); steps >= leastStepsOf && m.steps > 0 {
		if pace := m.steps / steps; pace < slowSpeed && steps-m.steps > spreadFactor*spread {
			m.speed, m.slow = pace, true
			if !known {
				m.reason = job.SlowUnknown
			}
			return
		}
	}
	switch waits := m.busy >= allBusy && busy > 0 && busy/m.busy < slowSpeed; {
	case m.slow:
	case waits && known:
		m.slow = m.speed < slowSpeed
	case waits:
		m.speed, m.slow, m.reason = busy/m.busy, true, job.SlowWork
	case !certain:
		m.speed = 1
	}
}

// held finds the reason that has held up rank i for the longest time, compared with the others. certain is
// true if the difference is too large for chance.
func (m *paces) held(all []paces, i int) (certain bool) {
	m.speed, m.reason = 1, job.SlowUnknown
	for _, reason := range reasons {
		free := math.Max(least, 1-m.lost[reason])
		usual, spread := median(of(all, i, func(m paces) float64 { return math.Max(least, 1-m.lost[reason]) }))
		known := m.speed < slowSpeed && reason == job.SlowShared
		if free/usual < m.speed && !known {
			m.speed, m.reason = free/usual, reason
			certain = usual-free > spreadFactor*spread && (reason != job.SlowShared || usual >= crowded)
		}
	}
	cores, _ := median(of(all, i, func(m paces) float64 { return float64(m.cores) }))
	if m.reason == job.SlowCores && float64(m.cores) >= cores {
		m.reason = job.SlowShared // the rank's own threads use the CPU
	}
	return certain
}

// reasons has the reasons that may be in paces.lost. SlowShared is the last, because it may follow from the
// others.
var reasons = []job.StragglerReason{job.SlowQuota, job.SlowCores, job.SlowMemory, job.SlowDisk, job.SlowNetwork, job.SlowThrottle, job.SlowShared}

// because has the words for each reason; %.0f is the share of the time in percent.
var because = map[job.StragglerReason]string{
	job.SlowUnknown:  "it makes fewer steps, and nothing shows why",
	job.SlowWork:     "it is busy nearly all the time, and the others wait",
	job.SlowQuota:    "a CPU limit of its control group (cpu.max) held it up for %.0f %% of the time",
	job.SlowShared:   "it waited for a CPU that other processes used for %.0f %% of the time",
	job.SlowCores:    "it may use fewer CPUs than the others, and waited for them for %.0f %% of the time",
	job.SlowDisk:     "it waited for files for %.0f %% of the time",
	job.SlowMemory:   "it waited for memory, of which its host has too little, for %.0f %% of the time",
	job.SlowNetwork:  "its connections to other hosts are slower than those of the others, which cost it %.0f %% of the time",
	job.SlowThrottle: "the clock of its GPU is lower by %.0f %%",
}

// slowWords returns a sentence about how slow a rank is, and why.
func slowWords(r job.StragglerReport, lost map[job.StragglerReason]float64) string {
	why := because[r.Reason]
	if r.Reason != job.SlowUnknown && r.Reason != job.SlowWork {
		why = fmt.Sprintf(why, 100*lost[r.Reason])
	}
	return fmt.Sprintf("rank %d on %s is slow: %.2f of the median of the others; %s", r.Rank, r.Host, r.Speed, why)
}

// overWords returns a sentence about a rank that is no longer slow.
func overWords(r job.StragglerReport) string {
	return fmt.Sprintf("rank %d on %s is no longer slow: %.2f of the median of the others", r.Rank, r.Host, r.Speed)
}

// hostWords returns the same sentences about all ranks of a host. r is the report of the slowest one.
func hostWords(host string, r job.StragglerReport) string {
	if r.Over {
		return fmt.Sprintf("no rank on %s is slow any more", host)
	}
	return fmt.Sprintf("all ranks on %s are slow; %s", host, r.Text)
}
