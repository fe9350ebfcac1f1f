package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// cluster is hosts of eight GPUs, of which about half are busy; racks of 32 hosts
// with two switches each where racked is set.
func cluster(hosts int, racked bool) job.Inventory {
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
		if racked {
			in(h, "", "")
			h.Rack, h.Switch = fmt.Sprint(i/32), fmt.Sprint(i/16%2)
		}
		inventory.Hosts = append(inventory.Hosts, h)
	}
	return inventory
}

// BenchmarkPlace is a gang of 256 on 1,250 hosts of eight GPUs, half of them busy.
func BenchmarkPlace(b *testing.B) {
	for _, racked := range []bool{false, true} {
		for _, n := range []int{1, 8, 9, 64, 256, 1024, 4096} {
			for _, gpus := range []int{1, 4} {
				b.Run(fmt.Sprintf("racks=%v/gang=%d/each=%d", racked, n, gpus), func(b *testing.B) {
					inventory := cluster(1250, racked)
					place(b, Want{n, gpus, job.LocalityAny}, inventory)
				})
			}
		}
	}
}

// BenchmarkPlaceGrowth is gangs of one GPU in 40 on 100 to 10,000 GPUs.
func BenchmarkPlaceGrowth(b *testing.B) {
	for _, gpus := range []int{100, 320, 1000, 3200, 10000} {
		for _, racked := range []bool{false, true} {
			b.Run(fmt.Sprintf("gpus=%d/racks=%v", gpus, racked), func(b *testing.B) {
				place(b, Want{gpus / 40, 1, job.LocalityAny}, cluster(gpus/8, racked))
			})
		}
	}
}

func place(b *testing.B, want Want, inventory job.Inventory) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := PlaceGPUs(want, inventory, job.Excluded{}); err != nil {
			b.Skip(err)
		}
	}
}
