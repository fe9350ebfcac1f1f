package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// cluster returns hosts of eight GPUs, of which about half are busy. rack is the number of hosts of each rack.
// Each rack has two switches. If rack is 0, there are no racks.
func cluster(hosts, rack int) job.Inventory {
	r := rand.New(rand.NewPCG(1, uint64(hosts)))
	var inventory job.Inventory
	for i := range hosts {
		name := fmt.Sprintf("h%04d", i)
		h := dgx1v(name)
		if i%2 == 1 {
			h = hgxH100(name)
		}
		for d := range h.Devices {
			if r.IntN(2) == 0 {
				h.Devices[d].Busy = "run"
			}
		}
		if rack > 0 {
			h.Rack, h.Switch = fmt.Sprint(i/rack), fmt.Sprint(i%rack*2/rack)
		}
		inventory.Hosts = append(inventory.Hosts, h)
	}
	return inventory
}

// BenchmarkPlace places a gang of 256 ranks on 1,250 hosts of eight GPUs, of which half are busy.
func BenchmarkPlace(b *testing.B) {
	for _, rack := range []int{0, 32, 4, 1} {
		for _, want := range []Want{{256, 1, ""}, {64, 4, ""}, {1, 1, ""}, {8, 1, ""}, {9, 1, ""}, {64, 1, ""}, {1024, 1, ""}, {4096, 1, ""}} {
			b.Run(fmt.Sprintf("ranks=%d/gpus=%d/rack=%d", want.Ranks, want.GPUs, rack), func(b *testing.B) {
				place(b, want, cluster(1250, rack))
			})
		}
	}
}

// BenchmarkNowhere tries to place a gang on one host of a cluster in which it fits on none.
func BenchmarkNowhere(b *testing.B) {
	inventory := cluster(1250, 32)
	for i := range inventory.Hosts {
		busy(inventory.Hosts[i], i%8)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := PlaceGPUs(Want{8, 1, job.LocalityHost}, inventory, job.Excluded{}); err == nil {
			b.Fatal("there is room")
		}
	}
}

// BenchmarkPlaceWide places gangs on hosts with many GPUs: 16 GPUs, or eight that are divided into seven MIG
// instances each.
func BenchmarkPlaceWide(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, make := range map[string]func(string) job.Host{"16": sixteen, "MIG": cut} {
		for _, n := range []int{1, 8, 32} {
			var inventory job.Inventory
			for i := range 100 {
				h := make(fmt.Sprint(i))
				for d := range h.Devices {
					if r.IntN(2) == 0 {
						h.Devices[d].Busy = "run"
					}
				}
				inventory.Hosts = append(inventory.Hosts, h)
			}
			b.Run(fmt.Sprintf("%s/ranks=%d", name, n), func(b *testing.B) {
				place(b, Want{n, 1, ""}, inventory)
			})
		}
	}
}

// BenchmarkPlaceGrowth places gangs on 100 to 10,000 GPUs. A gang has one GPU for each 40 GPUs of the cluster.
func BenchmarkPlaceGrowth(b *testing.B) {
	for _, gpus := range []int{100, 320, 1000, 3200, 10000} {
		for _, rack := range []int{0, 32} {
			b.Run(fmt.Sprintf("gpus=%d/rack=%d", gpus, rack), func(b *testing.B) {
				place(b, Want{gpus / 40, 1, job.LocalityAny}, cluster(gpus/8, rack))
			})
		}
	}
}

func place(b *testing.B, want Want, inventory job.Inventory) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := PlaceGPUs(want, inventory, job.Excluded{}); err != nil {
			b.Fatal(err)
		}
	}
}
