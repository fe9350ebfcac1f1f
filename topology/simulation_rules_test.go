package topology

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSimulationOrder holds the simulation to the ticket rule and to the waits of
// gangrun, on two hosts of one rack.
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
			// The third host's worth is free for nobody: 4 GPUs of the first host
			// are kept for the gang of eight from 100 on.
			"kept for the oldest", 3, long,
			[]arrival{{0, 100, 4}, {0, 1000, 4}, {0, 500, 8}, {10, 50, 8}, {20, 10, 4}},
			[]int64{0, 0, 0, 500, 500}, job.LocalityIsland,
		},
		{
			"ahead where nobody waits", 3, long,
			[]arrival{{0, 1000, 4}, {0, 1000, 4}, {0, 1000, 4}, {10, 50, 8}, {20, 2000, 4}},
			[]int64{0, 0, 0, 1000, 20}, job.LocalityIsland,
		},
		{
			"relaxes level by level", 3, 2 * time.Minute,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 300}, job.LocalityRack,
		},
		{
			"relaxes as gangrun does", 2, 2 * time.Minute,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 300}, job.LocalityRack,
		},
		{
			"does not wait", 1, 2 * time.Minute,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 60}, job.LocalityRack,
		},
		{
			"no patience at all", 3, 0,
			[]arrival{{0, 50, 4}, {0, 1000, 4}, {0, 1000, 4}, {60, 50, 8}},
			[]int64{0, 0, 0, 60}, job.LocalityRack,
		},
		{
			"two hosts, of those that have two", 3, long,
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

// TestSimulationPolicies places a gang among GPUs of two racks of two hosts each.
func TestSimulationPolicies(t *testing.T) {
	f := newFleet(2, 2, func(int) func(string) job.Host { return dgx1v })
	tests := []struct {
		name   string
		policy int
		level  job.Locality
		gpus   int
		free   []gpuMask
		want   []gpuMask // nil is none
	}{
		{"first-fit takes the first host", 0, job.LocalityAny, 2, []gpuMask{1, 0xff, 3, 0}, []gpuMask{0, 3, 0, 0}},
		{"first-fit takes the first GPUs", 0, job.LocalityAny, 9, []gpuMask{1, 0xff, 3, 0}, []gpuMask{1, 0xff, 0, 0}},
		{"best-fit takes the fullest host", 1, job.LocalityAny, 2, []gpuMask{1, 0xff, 3, 0}, []gpuMask{0, 0, 3, 0}},
		{"best-fit takes a rack", 1, job.LocalityAny, 10, []gpuMask{3, 0x7f, 0xff, 7}, []gpuMask{0, 0, 0xff, 3}},
		{"best-fit has no rack", 1, job.LocalityRack, 10, []gpuMask{0xff, 0, 0xff, 0}, nil},
		{"best-fit takes all racks", 1, job.LocalityAny, 10, []gpuMask{0xff, 0, 0xff, 0}, []gpuMask{0xff, 0, 3, 0}},
		// GPU0 and GPU1 have one NVLink between them, GPU1 and GPU2 two.
		{"best-fit finds an island", 2, job.LocalityIsland, 2, []gpuMask{0xff, 7, 3, 0}, []gpuMask{0, 6, 0, 0}},
		{"gangrun finds it too", 3, job.LocalityIsland, 2, []gpuMask{0, 7, 3, 0}, []gpuMask{0, 6, 0, 0}},
		{"gangrun has none", 3, job.LocalityIsland, 2, []gpuMask{0, 0, 3, 0}, nil},
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

// TestSimulationArrivals holds what is drawn against what is published.
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
			if i > 1 && math.Abs(short-percent) > 1 { // whole seconds blur the shortest
				t.Errorf("%s: %.1f %% run for less than %.1f minutes, want %.1f", sizeClasses[class].name, short, minutesAt(float64(i)), percent)
			}
		}
	}
}

// TestSimulationTally counts four gangs by hand.
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
