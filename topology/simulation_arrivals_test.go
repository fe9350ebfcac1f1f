package topology

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The arrivals follow what was published about Microsoft's Philly cluster: Jeon et al., "Analysis of
// Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019.

// sizeShares says how many GPUs gangs ask for. Gavel draws jobs as in the Philly trace: 70 % ask for one GPU,
// 10 % for two, 15 % for four and 5 % for eight (Narayanan et al., OSDI 2020; scheduler/utils.py of
// github.com/stanford-futuredata/gavel). Gavel omits gangs of more than eight GPUs, which are a class of the
// ATC paper. This simulation assumes that these are 1.5 of the 5 %.
var sizeShares = []struct {
	gpus  int
	share float64
}{{1, 0.70}, {2, 0.10}, {4, 0.15}, {8, 0.035}, {16, 0.010}, {32, 0.005}}

// sizeClasses has the classes of the ATC paper, with the largest number of GPUs of each.
var sizeClasses = []struct {
	name string
	most int
}{{"1 GPU", 1}, {"2-4 GPUs", 4}, {"8 GPUs", 8}, {"more than 8", math.MaxInt}}

func sizeClass(gpus int) int {
	for i, c := range sizeClasses {
		if gpus <= c.most {
			return i
		}
	}
	return len(sizeClasses)
}

// runTimes is Figure 2 of the ATC paper, read to about half a per cent from its plot in the authors' public
// notebook (github.com/msr-fiddle/philly-traces). For each class, it has the per cent of its jobs that run for
// at most 10^-1, 10^-0.5 ... 10^4 minutes. The figure ends there, at a week. Longer jobs run for a week in this
// simulation.
var runTimes = [][]float64{
	{0.5, 2.5, 11.5, 28.5, 39.8, 59.8, 82.1, 91.8, 95.9, 98.2, 99.6},
	{0.8, 9.9, 23.5, 31.0, 37.7, 49.9, 56.8, 65.1, 75.0, 89.2, 96.8},
	{1.1, 2.3, 8.0, 14.0, 22.3, 33.8, 43.2, 56.8, 67.4, 81.9, 94.5},
	{1.1, 2.1, 13.3, 18.6, 26.0, 37.5, 47.6, 60.5, 77.5, 91.3, 97.3},
}

// minutesAt returns the run time at an index in a list of runTimes.
func minutesAt(place float64) float64 { return math.Pow(10, -1+place/2) }

// drawMinutes draws a run time. Between two points of the figure, the logarithms of run times are spread
// evenly.
func drawMinutes(class int, quantile float64) float64 {
	list := runTimes[class]
	for i, percent := range list {
		if 100*quantile >= percent {
			continue
		}
		if i == 0 {
			return minutesAt(0)
		}
		return minutesAt(float64(i-1) + (100*quantile-list[i-1])/(percent-list[i-1]))
	}
	return minutesAt(float64(len(list) - 1))
}

// meanMinutes returns the mean of drawMinutes.
func meanMinutes(class int) float64 {
	list := runTimes[class]
	last := len(list) - 1
	mean := minutesAt(0)*list[0]/100 + minutesAt(float64(last))*(100-list[last])/100
	for i := range last {
		a, b := minutesAt(float64(i)), minutesAt(float64(i+1))
		mean += (list[i+1] - list[i]) / 100 * (b - a) / math.Log(b/a)
	}
	return mean
}

// gangMinutes returns the mean of the GPUs of a gang times its minutes.
func gangMinutes() float64 {
	mean := 0.0
	for _, s := range sizeShares {
		mean += s.share * float64(s.gpus) * meanMinutes(sizeClass(s.gpus))
	}
	return mean
}

// arrival is a gang that asks for GPUs. Times are in seconds.
type arrival struct {
	at, run int64
	gpus    int
}

// block is a number of gangs. In each block, every size comes as often as its share says, in random order. Run
// times are spread as evenly: those of one size step through its distribution by the golden ratio, from a start
// that depends on the seed. If they were drawn one by one, a few large gangs that run for a week would
// determine the load, and the seeds would differ more than the policies.
const block = 200

// arrivals draws the gangs that come until a time. They come independently of each other at a constant rate (a
// Poisson process, which this simulation assumes). In the long run, they ask for the share load of the
// cluster's GPUs.
func arrivals(seed uint64, until int64, gpus int, load float64) []arrival {
	r := rand.New(rand.NewPCG(seed, 4))
	gap := 60 * gangMinutes() / (float64(gpus) * load)
	places := make([]float64, len(sizeShares))
	for i := range places {
		places[i] = r.Float64()
	}
	var sizes []int // indices in sizeShares of the gangs to come
	var list []arrival
	for now := 0.0; ; {
		now += r.ExpFloat64() * gap
		if int64(now) >= until {
			return list
		}
		if len(sizes) == 0 {
			for i, s := range sizeShares {
				sizes = append(sizes, slices.Repeat([]int{i}, int(math.Round(block*s.share)))...)
			}
			r.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
		}
		size := sizes[0]
		sizes = sizes[1:]
		_, places[size] = math.Modf(places[size] + math.Phi)
		g := sizeShares[size].gpus
		seconds := math.Round(60 * drawMinutes(sizeClass(g), places[size]))
		list = append(list, arrival{at: int64(now), run: max(1, int64(seconds)), gpus: g})
	}
}
