package vitals

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const (
	// The CPU time of a rank is odd if it is less than cpuLittle times the median, and the median is at least
	// cpuCounts percent of a core. It is also odd if it is more than cpuMuch times the median, and at least
	// 1.5 times cpuCounts percent.
	cpuLittle, cpuMuch, cpuCounts = 0.25, 3, 20
	// The memory of a rank is odd if it is more than memoryMuch times the median, and more than the median by
	// memoryCounts bytes.
	memoryMuch, memoryCounts = 2, 256 << 20
	// A GPU is idle below a utilization of gpuIdle percent, and busy above gpuBusy.
	gpuIdle, gpuBusy = 5, 30
	// A rank is behind if the others are ahead by more than the steps of this time and of the age of its
	// pulse. Ranks report steps at most once a second, and pulses may be late.
	behind = 5 * time.Second
	// stillSteps is how many steps a gang that stands still would have made meanwhile.
	stillSteps = 5
	// leastRanks is how many ranks there must be for one to differ from most.
	leastRanks = 3
)

// sum returns the figures of the gang, and marks the ranks that differ from the others.
func sum(ranks []Rank) Gang {
	g := Gang{Lowest: -1, Highest: -1, Odd: []int{}}
	var steps, cpus, sizes, loads, rates []float64
	for _, r := range ranks {
		if p := r.Progress; p != nil {
			if g.Lowest < 0 || p.At() < g.Lowest {
				g.Lowest = p.At()
			}
			g.Highest, g.Total = max(g.Highest, p.At()), max(g.Total, p.Total)
			g.ByEpoch = p.ByEpoch
			steps = append(steps, float64(p.At()))
		}
		if r.Rate > 0 {
			rates = append(rates, r.Rate)
		}
		if r.CPU != nil {
			g.CPU += *r.CPU
			cpus = append(cpus, *r.CPU)
		}
		if g.RSS += r.RSS; r.GPU != nil {
			loads = append(loads, float64(r.GPU.Utilization))
		}
		sizes = append(sizes, float64(r.RSS))
	}
	g.Rate, g.CPU = median(rates), rounded(g.CPU)
	most := usual{median(steps), g.Rate, median(cpus), median(sizes), median(loads), len(ranks) >= leastRanks}
	for i := range ranks {
		r := &ranks[i]
		if r.Odd = append(r.Odd, most.oddities(*r)...); len(r.Odd) > 0 {
			g.Odd = append(g.Odd, r.Rank)
		}
	}
	return g
}

// still notes that no rank has made a step for longer than a window of rates, and for longer than
// stillSteps steps at the last rate, which falls meanwhile.
func (g *Gang) still(ranks []Rank) {
	var shortest *job.Duration
	for _, r := range ranks {
		if r.Idle != nil && (shortest == nil || *r.Idle < *shortest) {
			shortest = r.Idle
		}
	}
	if shortest == nil || g.Rate <= 0 {
		return
	}
	if idle := time.Duration(*shortest); idle > window && idle.Minutes()*g.Rate > stillSteps {
		g.Still, g.Rate = *shortest, 0
	}
}

// usual are the medians of the ranks.
type usual struct {
	step, rate, cpu, rss, gpu float64
	compare                   bool // true if there are leastRanks ranks
}

func (u usual) oddities(r Rank) (odd []Oddity) {
	mark := func(is bool, what Oddity) {
		if is {
			odd = append(odd, what)
		}
	}
	mark(r.State != job.ProcessRunning && r.State != job.ProcessSleeping && r.State != "", OddState)
	mark(r.Progress != nil && r.Progress.LossIs != "", OddLoss)
	if !u.compare {
		return odd
	}
	unseen := 1 + u.rate*(behind+time.Duration(r.Age)).Minutes()
	mark(r.Progress != nil && float64(r.Progress.At())+unseen < u.step, OddStep)
	mark(r.CPU != nil && u.cpu >= cpuCounts && *r.CPU < cpuLittle*u.cpu, OddCPU)
	mark(r.CPU != nil && *r.CPU >= 1.5*cpuCounts && *r.CPU > cpuMuch*u.cpu, OddCPU)
	mark(float64(r.RSS) > memoryMuch*u.rss && float64(r.RSS) > u.rss+memoryCounts, OddMemory)
	mark(r.GPU != nil && float64(r.GPU.Utilization) < gpuIdle && u.gpu > gpuBusy, OddGPU)
	return odd
}

// median sorts figures and returns their median. It returns 0 if there are none.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}
