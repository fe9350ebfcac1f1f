package topology

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSimulationOrder checks that the simulation follows the ticket rule, and waits as gangrun does. It has two
// hosts in one rack.
func TestSimulationOrder(t *testing.T) {
	const long = time.Hour
	tests := []struct {
		name     string
		policy   int
		patience time.Duration
		gangs    []arrival
		starts   []int64
		last     job.Locality // level of the last gang
	}{
		{
			// From 100 s on, 4 GPUs of the first host are idle. They are kept for the gang of eight that came at 10 s.
			// So the last gang does not start before that gang gets the second host at 500 s.
			"kept for the oldest", ruleOwn, long,
			[]arrival{{0, 100, 4}, {0, 1000, 4}, {0, 500, 8}, {10, 50, 8}, {20, 10, 4}},
			[]int64{0, 0, 0, 500, 500}, job.LocalityIsland,
		},
		{
			"ahead where nobody waits", ruleOwn, long,
			[]arrival{{0, 1000, 4}, {0, 1000, 4}, {0, 1000, 4}, {10, 50, 8}, {20, 2000, 4}},
			[]int64{0, 0, 0, 1000, 20}, job.LocalityIsland,
		},
		{
			"relaxes level by level", ruleOwn, 2 * time.Minute,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 300}, job.LocalityRack,
		},
		{
			"relaxes as gangrun does", ruleLent, 2 * time.Minute,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 300}, job.LocalityRack,
		},
		{
			"knows no islands to wait for", ruleBlind, 2 * time.Minute,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 180}, job.LocalityRack,
		},
		{
			"does not wait", ruleBest, 2 * time.Minute,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 60}, job.LocalityRack,
		},
		{
			"no patience at all", ruleOwn, 0,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 60}, job.LocalityRack,
		},
		{
			"two hosts, of those that have two", ruleOwn, long,
			[]arrival{{0, 100, 1}, {1, 10, 16}},
			[]int64{0, 100}, job.LocalityRack,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFleet(1, 2, func(int) func(string) job.Host { return hgxH100 })
			s := newSimulation(f, policies[test.policy], test.patience, test.gangs)
			for {
				more, err := s.step()
				if err != nil {
					t.Fatal(err)
				}
				if !more {
					break
				}
			}
			var starts []int64
			for _, g := range s.gangs {
				starts = append(starts, g.start)
			}
			if !slices.Equal(starts, test.starts) || s.gangs[len(s.gangs)-1].level != test.last {
				t.Errorf("starts %v at level %s, want %v at %s", starts, s.gangs[len(s.gangs)-1].level, test.starts, test.last)
			}
			if !slices.Equal(s.free, f.idle()) {
				t.Errorf("at the end %v is free", s.free)
			}
		})
	}
}

// TestSimulationPolicies places a gang on the GPUs of two racks of two hosts each.
func TestSimulationPolicies(t *testing.T) {
	f := newFleet(2, 2, func(int) func(string) job.Host { return dgx1v })
	tests := []struct {
		name   string
		policy int
		level  job.Locality
		gpus   int
		free   []gpuMask
		want   []gpuMask // nil means that there is no place
	}{
		{"first-fit takes the first host", ruleFirst, job.LocalityAny, 2, []gpuMask{1, 0xff, 3, 0}, []gpuMask{0, 3, 0, 0}},
		{"first-fit takes the first GPUs", ruleFirst, job.LocalityAny, 9, []gpuMask{1, 0xff, 3, 0}, []gpuMask{1, 0xff, 0, 0}},
		{"best-fit takes the fullest host", ruleBest, job.LocalityAny, 2, []gpuMask{1, 0xff, 3, 0}, []gpuMask{0, 0, 3, 0}},
		{"best-fit takes a rack", ruleBest, job.LocalityAny, 10, []gpuMask{3, 0x7f, 0xff, 7}, []gpuMask{0, 0, 0xff, 3}},
		{"best-fit has no rack", ruleBest, job.LocalityRack, 10, []gpuMask{0xff, 0, 0xff, 0}, nil},
		{"best-fit takes all racks", ruleBest, job.LocalityAny, 10, []gpuMask{0xff, 0, 0xff, 0}, []gpuMask{0xff, 0, 3, 0}},
		// GPU0 and GPU1 have one NVLink between them, GPU1 and GPU2 two.
		{"best-fit finds an island", ruleLent, job.LocalityIsland, 2, []gpuMask{0xff, 7, 3, 0}, []gpuMask{0, 6, 0, 0}},
		{"best-fit is blind to it", ruleBlind, job.LocalityHost, 2, []gpuMask{0xff, 7, 3, 0}, []gpuMask{0, 0, 3, 0}},
		{"gangrun finds it too", ruleOwn, job.LocalityIsland, 2, []gpuMask{0, 7, 3, 0}, []gpuMask{0, 6, 0, 0}},
		{"gangrun has none", ruleOwn, job.LocalityIsland, 2, []gpuMask{0, 0, 3, 0}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := policies[test.policy].place(f, test.free, test.gpus, test.level)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%x of %x, want %x", got, test.free, test.want)
			}
		})
	}
}

// TestSimulationArrivals compares the drawn gangs with what was published.
func TestSimulationArrivals(t *testing.T) {
	const days, load = 400, 0.9
	list := arrivals(1, days*day, 256, load)
	if !slices.Equal(list, arrivals(1, days*day, 256, load)) || slices.Equal(list, arrivals(2, days*day, 256, load)) {
		t.Error("a seed says more or less than what is drawn")
	}
	if len(list) < 10000 {
		t.Fatalf("%d gangs in %d days", len(list), days)
	}
	minutes, sizes := make([][]float64, len(sizeClasses)), map[int]float64{}
	asked := 0.0
	for i, a := range list {
		if i > 0 && a.at < list[i-1].at {
			t.Fatalf("gang %d comes before the one before it", i)
		}
		minutes[sizeClass(a.gpus)] = append(minutes[sizeClass(a.gpus)], float64(a.run)/60)
		sizes[a.gpus] += 1 / float64(len(list))
		asked += float64(a.gpus) * float64(a.run) / (256 * days * day)
	}
	for _, s := range sizeShares {
		if got := sizes[s.gpus]; math.Abs(got-s.share) > 0.01*s.share+1e-3 {
			t.Errorf("%.4f of the gangs have %d GPUs, want %.4f", got, s.gpus, s.share)
		}
	}
	if math.Abs(asked-load) > 0.03 {
		t.Errorf("%.3f of the GPUs are asked for, want %.3f", asked, load)
	}
	for class, list := range runTimes {
		for i, percent := range list {
			short := 0.0
			for _, m := range minutes[class] {
				if m < minutesAt(float64(i)) {
					short += 100 / float64(len(minutes[class]))
				}
			}
			if i > 1 && math.Abs(short-percent) > 1 { // whole seconds distort the shortest run times
				t.Errorf("%s: %.1f %% run for less than %.1f minutes, want %.1f", sizeClasses[class].name, short, minutesAt(float64(i)), percent)
			}
		}
	}
}

// TestSimulationTally checks the figures of four gangs.
func TestSimulationTally(t *testing.T) {
	o := tally([]simulated{
		{arrival: arrival{0, 3600, 1}, start: 0, level: job.LocalityIsland, hosts: 1},
		{arrival: arrival{0, 3600, 2}, start: 600, level: job.LocalityIsland, hosts: 1, links: 2},
		{arrival: arrival{0, 7200, 4}, start: 1200, level: job.LocalityRack, hosts: 2},
		{arrival: arrival{0, 3600, 16}, start: 1800, level: job.LocalityAny, hosts: 4},
	})
	wants := outcome{
		rowIsland: 100. / 3, rowHost: 100. / 3, "in one rack, % of gangs": 200. / 3,
		"on one island, % of GPU-hours": 200. / 26, "in one rack, % of GPU-hours": 1000. / 26,
		rowHosts:  5. / 3,
		rowLinks:  2. / 3,
		rowMedian: 15, rowP90: 27, rowDelay: 15, "delay, mean, 1 GPU": 0, "delay, mean, 2-4 GPUs": 15, "delay, mean, more than 8": 30,
		"gangs measured": 4,
	}
	for name, want := range wants {
		if math.Abs(o[name]-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, o[name], want)
		}
	}
	if !math.IsNaN(o["delay, mean, 8 GPUs"]) {
		t.Error("there is no gang of eight")
	}
}

// TestSimulationCompared checks the counts of seeds and days.
func TestSimulationCompared(t *testing.T) {
	of := func(islands, delays []float64) []outcome {
		var list []outcome
		for i := range islands {
			list = append(list, outcome{rowIsland: islands[i], rowDelay: delays[i]})
		}
		return list
	}
	all := make([][]outcome, len(policies))
	all[ruleBest] = of([]float64{50, 60, 70}, []float64{5, 5, 5})
	all[ruleOwn] = of([]float64{51, 60, 71}, []float64{5, 4, 6})
	if islands, delays, both := held(all, ruleBest, rowIsland), held(all, ruleBest, rowDelay), held(all, ruleBest, rowIsland, rowDelay); islands != 2 || delays != 2 || both != 1 {
		t.Errorf("it holds its own in %d, %d and %d seeds, want 2, 2 and 1", islands, delays, both)
	}
	c := compared{islands: make([][][]float64, len(policies))}
	c.islands[ruleBest] = [][]float64{{50, 50, 50, 50}, {50, math.NaN(), 50, 50}}
	c.islands[ruleOwn] = [][]float64{{52, 49, 50, 51}, {51, math.NaN(), 50, 46}}
	want := chance{more: 300. / 7, fewer: 200. / 7, mean: -1. / 7, sigma: math.Sqrt((4 + 1 + 0 + 1 + 1 + 0 + 16 - 7./49) / 6), none: 50, all: 25}
	if got := c.chance(ruleBest); math.Abs(got.sigma-want.sigma) > 1e-9 || math.Abs(got.mean-want.mean) > 1e-9 || math.Abs(got.more-want.more) > 1e-9 || math.Abs(got.fewer-want.fewer) > 1e-9 || got.none != want.none || got.all != want.all {
		t.Errorf("a day says %+v, want %+v", got, want)
	}
	if got := spread([]float64{0.4, math.NaN(), -0.04, 0.2}, 1); got != "0.2 (0.0 to 0.4)" {
		t.Errorf("a spread is %q", got)
	}
}

// TestSimulationMeasure measures a day by itself, and as the first of three days.
func TestSimulationMeasure(t *testing.T) {
	tr := trial{clusters[0].make(), 1, fullLoad, day, []int64{day, 3 * day}, defaultWait}
	both, gangs, err := measure(tr, policies[ruleOwn])
	if err != nil {
		t.Fatal(err)
	}
	tr.measured = tr.measured[:1]
	one, _, err := measure(tr, policies[ruleOwn])
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range one[0] {
		if v != both[0][name] && !math.IsNaN(v) {
			t.Errorf("%s is %g of the first day, and %g of it alone", name, both[0][name], v)
		}
	}
	if days := daily(gangs, tr.warm, 3*day); len(days) != 3 || days[0] != one[0][rowIsland] {
		t.Errorf("days have %v, and the first alone %v", days, one[0][rowIsland])
	}
}
