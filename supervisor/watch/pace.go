package watch

import (
	"fmt"
	"math"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// paces are what one window shows of a rank.
type paces struct {
	steps   float64 // that it has made; 0 if it tells none
	need    float64 // share of the time in which it could use a CPU
	busy    float64 // need, and the share in which it waited for files
	sending float64 // share in which data was on its way
	rate    float64 // bytes a second that its connections deliver; 0 if it is not known
	rtt     float64 // seconds; 0 if it is not known
	clock   float64 // MHz of its GPU, if that was busy
	cores   int
	lost    map[job.StragglerReason]float64 // shares of the time in which it was held up

	speed  float64 // as a share of the median of the others
	slow   bool
	reason job.StragglerReason
}

const (
	// leastStepsOf is how many steps the median rank must have made for steps to be compared.
	leastStepsOf = 10
	// spreadFactor is by how many standard deviations of the others a slow rank must differ from
	// their median.
	spreadFactor = 3
	// leastLost is the share of the time that something must have cost to be the reason why a rank makes
	// fewer steps.
	leastLost = 0.1
	// leastFiles is how many samples must have found a rank waiting for files.
	leastFiles = 2
	// least is the smallest share of the time in which a rank counts as free.
	least = 0.02
	// crowded is the share of the time below which the others run when they can, if there are more
	// processes than CPUs. Then, waiting for a CPU says nothing: a rank that waits for messages gives up
	// its CPU more often than one that works.
	crowded = 0.5
	// idler is by how much more of the time than the others a rank may sleep, and still hold them up.
	idler = 0.1
	// allBusy is the share of the time in which a rank that works without pause is busy at least.
	allBusy = 0.9
	// slowLine is the rate, as a share of that of the others, below which a line is slow. Rates differ.
	slowLine = 0.4
	// A round-trip time is long if it is this many times that of the others, and longer by leastRTT seconds.
	rttFactor, leastRTT = 2, 1e-3
	// stalled is the share of the time in which a host that lacks memory waits for it at least.
	stalled = 0.05
	// busyGPU is the utilisation in percent from which on a GPU has reason to run at full clock.
	busyGPU = 50
	// full is the share of the time of its CPUs that a rank uses at least if others use none of it.
	full = 0.9
)

// measure returns what the window shows of a rank by itself.
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
	if m.need = math.Min(1, ran+waited); r.files >= leastFiles && m.need < 1 { // samples only say how to divide the rest
		m.lost[reason] = (1 - m.need) * float64(r.files) / float64(r.idle)
	} else if r.files >= leastFiles { // several threads
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

// of returns a value of each rank but i, leaving out those that are not known.
func of(all []paces, i int, value func(paces) float64) (values []float64) {
	for j, m := range all {
		if v := value(m); j != i && v > 0 {
			values = append(values, v)
		}
	}
	return values
}

// median returns the middle of values, and how they spread: the standard deviation that their median
// absolute deviation means. Both are 0 without values.
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

// compare completes what is known of each rank by comparing it with the others.
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
		all[i].slow = all[i].slow && 2*slow < len(all) // otherwise nobody knows what is usual
	}
}

// link adds what the network and the GPU have cost rank i.
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

// held finds what has held up rank i the most, compared with the others. certain is true if that is no
// chance.
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
		m.reason = job.SlowShared // by threads of its own
	}
	return certain
}

// reasons are the reasons that have a share of the time. That another process uses a CPU is the last: it
// may follow from the others.
var reasons = []job.StragglerReason{job.SlowQuota, job.SlowCores, job.SlowMemory, job.SlowDisk, job.SlowNetwork, job.SlowThrottle, job.SlowShared}

// because says what a reason means for a rank; %.0f is the share of the time in percent.
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

// slowWords says how slow a rank is, and why.
func slowWords(r job.StragglerReport, lost map[job.StragglerReason]float64) string {
	why := because[r.Reason]
	if r.Reason != job.SlowUnknown && r.Reason != job.SlowWork {
		why = fmt.Sprintf(why, 100*lost[r.Reason])
	}
	return fmt.Sprintf("rank %d on %s is slow: %.2f of the median of the others; %s", r.Rank, r.Host, r.Speed, why)
}

// overWords says that a rank is no longer slow.
func overWords(r job.StragglerReport) string {
	return fmt.Sprintf("rank %d on %s is no longer slow: %.2f of the median of the others", r.Rank, r.Host, r.Speed)
}

// hostWords says the same of all ranks of a host; r is the report of the slowest.
func hostWords(host string, r job.StragglerReport) string {
	if r.Over {
		return fmt.Sprintf("no rank on %s is slow any more", host)
	}
	return fmt.Sprintf("all ranks on %s are slow; %s", host, r.Text)
}
