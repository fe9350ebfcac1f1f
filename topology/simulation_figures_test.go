package topology

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const day = 24 * 60 * 60 // seconds

// trial is one run of the simulation: the arrivals, and the parts that are measured.
type trial struct {
	fleet    *fleet
	seed     uint64
	load     float64
	warm     int64   // seconds before the measured part
	measured []int64 // lengths of the measured parts in seconds; a part has the gangs that come during it
	patience time.Duration
}

// outcome has the figures of a trial by their names in rows.
type outcome map[string]float64

// row is a figure of the document.
type row struct {
	name   string
	digits int
}

// The names of the figures in the document.
const (
	rowIsland = "on one island, % of gangs"
	rowHost   = "on one host, % of gangs"
	rowHosts  = "hosts, as a multiple of the fewest possible, mean"
	rowLinks  = "NVLinks of the slowest link of the ring, mean (0 if the gang is on several hosts)"
	rowMedian = "delay, median"
	rowP90    = "delay, 90th percentile"
	rowDelay  = "delay, mean"
	rowPartly = "free GPUs on partly busy hosts, mean"
	rowSplit  = "time in which 8 GPUs are free but no whole host, %"
	rowBusy   = "GPUs busy, %"
)

// rows has the figures in order. A heading has no figure.
var rows = []row{
	{"**locality, gangs of two GPUs or more**", -1},
	{rowIsland, 1},
	{rowHost, 1},
	{"in one rack, % of gangs", 1},
	{"on one island, % of GPU-hours", 1},
	{"on one host, % of GPU-hours", 1},
	{"in one rack, % of GPU-hours", 1},
	{rowHosts, 2},
	{rowLinks, 1},
	{"**queueing delay, minutes**", -1},
	{rowMedian, 1},
	{rowP90, 1},
	{rowDelay, 1},
	{"delay, mean, 1 GPU", 1},
	{"delay, mean, 2-4 GPUs", 1},
	{"delay, mean, 8 GPUs", 1},
	{"delay, mean, more than 8", 1},
	{"**fragmentation**", -1},
	{rowPartly, 1},
	{rowSplit, 1},
	{"**use**", -1},
	{rowBusy, 1},
	{"gangs measured", 0},
}

// meter adds up the state of a cluster over time, as GPUs times seconds.
type meter struct {
	from, to            int64
	busy, partly, split float64
}

func (m *meter) watch(a, b int64, free []gpuMask) {
	seconds := float64(min(b, m.to) - max(a, m.from))
	if seconds <= 0 {
		return
	}
	all, parts := 0, 0
	for _, f := range free {
		all += f.count()
		if f.count() < 8 {
			parts += f.count()
		}
	}
	m.busy += seconds * float64(8*len(free)-all)
	m.partly += seconds * float64(parts)
	if all >= 8 && parts == all {
		m.split += seconds
	}
}

// measure runs a trial with a policy. Gangs continue to come after the measured ones until all measured gangs
// have started. measure returns an outcome for each measured part, and the gangs of the longest part.
func measure(tr trial, p policy) ([]outcome, []simulated, error) {
	end := tr.warm + slices.Max(tr.measured)
	gpus := 8 * len(tr.fleet.hosts)
	s := newSimulation(tr.fleet, p, tr.patience, arrivals(tr.seed, end+14*day, gpus, tr.load))
	meters := make([]meter, len(tr.measured))
	for i, length := range tr.measured {
		meters[i] = meter{from: tr.warm, to: tr.warm + length}
	}
	s.watch = func(a, b int64, free []gpuMask) {
		for i := range meters {
			meters[i].watch(a, b, free)
		}
	}
	at := func(seconds int64) int { // index of the first gang that comes at that time or later
		i, _ := slices.BinarySearchFunc(s.gangs, seconds, func(g simulated, t int64) int { return cmp.Compare(g.at, t) })
		return i
	}
	from, to := at(tr.warm), at(end)
	for next := from; next < to || s.now < end; {
		more, err := s.step()
		if err != nil {
			return nil, nil, err
		}
		if !more {
			return nil, nil, fmt.Errorf("%s leaves %d gangs waiting", p.name, to-next)
		}
		for next < to && s.gangs[next].start >= 0 {
			next++
		}
	}
	var list []outcome
	for i, m := range meters {
		o := tally(s.gangs[from:at(m.to)])
		seconds := float64(tr.measured[i])
		o[rowPartly] = m.partly / seconds
		o[rowSplit] = 100 * m.split / seconds
		o[rowBusy] = 100 * m.busy / seconds / float64(gpus)
		list = append(list, o)
	}
	return list, s.gangs[from:to], nil
}

// tally returns the figures of gangs that have started.
func tally(gangs []simulated) outcome {
	var delays []float64
	classes := make([][]float64, len(sizeClasses))
	var count, hours, stretch, links float64
	counts, hoursOf := map[job.Locality]float64{}, map[job.Locality]float64{}
	for _, g := range gangs {
		delay := float64(g.start-g.at) / 60
		delays = append(delays, delay)
		classes[sizeClass(g.gpus)] = append(classes[sizeClass(g.gpus)], delay)
		if g.gpus == 1 {
			continue
		}
		h := float64(g.gpus) * float64(g.run) / 3600
		count, hours = count+1, hours+h
		stretch += float64(g.hosts) / float64((g.gpus+7)/8)
		links += float64(g.links)
		for _, level := range job.Localities() { // each level includes the closer ones
			if slices.Index(job.Localities(), g.level) <= slices.Index(job.Localities(), level) {
				counts[level]++
				hoursOf[level] += h
			}
		}
	}
	slices.Sort(delays)
	o := outcome{
		rowMedian: quantile(delays, 0.5), rowP90: quantile(delays, 0.9), rowDelay: mean(delays),
		"gangs measured": float64(len(gangs)),
		rowHosts:         stretch / count,
		rowLinks:         links / count,
	}
	for i, c := range sizeClasses {
		o["delay, mean, "+c.name] = mean(classes[i])
	}
	for level, words := range map[job.Locality]string{
		job.LocalityIsland: "on one island", job.LocalityHost: "on one host", job.LocalityRack: "in one rack",
	} {
		o[words+", % of gangs"] = 100 * counts[level] / count
		o[words+", % of GPU-hours"] = 100 * hoursOf[level] / hours
	}
	return o
}

// quantile returns a quantile of sorted values. It interpolates between the two nearest values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
