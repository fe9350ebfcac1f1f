package topology

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The arrivals are drawn from what is published of Microsoft's Philly cluster:
// Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training
// Workloads", USENIX ATC 2019.

// sizeShares says how many GPUs gangs ask for: 70 % one, 10 % two, 15 % four and
// 5 % eight is how Gavel (Narayanan et al., OSDI 2020; scheduler/utils.py of
// github.com/stanford-futuredata/gavel) draws jobs as in the Philly trace. It leaves
// out those of more than eight, a class of the ATC paper; that these are 1.5 of the
// 5 % is a choice of this simulation.
var sizeShares = []struct {
	gpus  int
	share float64
}{{1, 0.70}, {2, 0.10}, {4, 0.15}, {8, 0.035}, {16, 0.010}, {32, 0.005}}

// sizeClasses are the classes of the ATC paper, by the most GPUs of each.
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

// runTimes is Figure 2 of the ATC paper, read from its plot in the authors' public
// notebook (github.com/msr-fiddle/philly-traces) to about half a per cent: for each
// class, the per cent of its jobs that run for at most 10^-1, 10^-0.5 ... 10^4
// minutes. The figure ends there, at a week; jobs beyond it run for a week here.
var runTimes = [][]float64{
	{0.5, 2.5, 11.5, 28.5, 39.8, 59.8, 82.1, 91.8, 95.9, 98.2, 99.6},
	{0.8, 9.9, 23.5, 31.0, 37.7, 49.9, 56.8, 65.1, 75.0, 89.2, 96.8},
	{1.1, 2.3, 8.0, 14.0, 22.3, 33.8, 43.2, 56.8, 67.4, 81.9, 94.5},
	{1.1, 2.1, 13.3, 18.6, 26.0, 37.5, 47.6, 60.5, 77.5, 91.3, 97.3},
}

// minutesAt is the run time at a place in a list of runTimes.
func minutesAt(place float64) float64 { return math.Pow(10, -1+place/2) }

// drawMinutes draws a run time: between two points of the figure its logarithm is
// evenly spread.
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

// meanMinutes is the mean of drawMinutes.
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

// gangMinutes is the mean of GPUs times minutes of a gang.
func gangMinutes() float64 {
	mean := 0.0
	for _, s := range sizeShares {
		mean += s.share * float64(s.gpus) * meanMinutes(sizeClass(s.gpus))
	}
	return mean
}

// arrival is a gang that comes and asks for GPUs; times are seconds.
type arrival struct {
	at, run int64
	gpus    int
}

// block is how many gangs come with each size as often as its share says, in
// any order. Run times are drawn as evenly: those of a size step through its
// distribution by the golden ratio, from a start that the seed says. Drawn one by
// one, a few gangs of many GPUs that run for a week would decide how much there is
// to do, and the seeds would differ by that more than the policies.
const block = 200

// arrivals draws the gangs that come until a time. They come independently of each
// other at one rate (a Poisson process, a choice of this simulation), so that in
// the long run they ask for load of the GPUs of the cluster.
func arrivals(seed uint64, until int64, gpus int, load float64) []arrival {
	r := rand.New(rand.NewPCG(seed, 4))
	gap := 60 * gangMinutes() / (float64(gpus) * load)
	places := make([]float64, len(sizeShares))
	for i := range places {
		places[i] = r.Float64()
	}
	var sizes []int // in sizeShares, of the gangs to come
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
