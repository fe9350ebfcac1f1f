package topology

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestTies checks that, of choices with the same cost, the one is taken that leaves more whole.
func TestTies(t *testing.T) {
	for _, test := range []struct {
		name  string
		hosts []job.Host
		on    string
		gpus  []int
	}{
		{"a leftover, not the last whole quad", []job.Host{busy(dgx1v("h"), 5, 6, 7)}, "h", []int{4}},
		{"nor the quad of another host", []job.Host{busy(dgx1v("a"), 4, 5, 6, 7), busy(dgx1v("b"), 5, 6, 7)}, "b", []int{4}},
		{"the fullest host where all leave as much", []job.Host{busy(hgxH100("a"), 0, 1, 2), busy(hgxH100("b"), 0, 1, 2, 3, 4)}, "b", []int{5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, ok := check(t, Want{1, 1, ""}, job.Inventory{Hosts: test.hosts}, job.Excluded{})
			if !ok {
				t.Fatal("no placement")
			}
			if got := c.Placement.Ranks[0].Host; got != test.on || !slices.Equal(given(c), test.gpus) {
				t.Errorf("GPUs %v of host %s, want %v of %s", given(c), got, test.gpus, test.on)
			}
		})
	}
}

// TestKeepsWhole checks that, of choices with the same cost, the one is taken that leaves best connected sets
// of the most sizes.
func TestKeepsWhole(t *testing.T) {
	for _, make := range []func(string) job.Host{dgx1v, pcie} {
		f := newFleet(1, 1, func(int) func(string) job.Host { return make })
		// sizes returns the number of sizes for which the free GPUs contain a best connected set.
		sizes := func(free gpuMask) (n int) {
			for size := 2; size <= free.count(); size++ {
				if f.islandIn(0, free, size) != 0 {
					n++
				}
			}
			return n
		}
		broken := 0
		for free := gpuMask(1); free != 0; free++ {
			h := make("h")
			var list []int
			for g := range 8 {
				if free>>g&1 == 0 {
					busy(h, g)
				} else {
					list = append(list, g)
				}
			}
			for n := 1; n < min(4, len(list)); n++ {
				c, err := PlaceGPUs(Want{n, 1, ""}, job.Inventory{Hosts: []job.Host{h}}, job.Excluded{})
				if err != nil {
					t.Fatal(err)
				}
				left := func(gpus []int) gpuMask {
					m := free
					for _, g := range gpus {
						m &^= 1 << g
					}
					return m
				}
				kept := sizes(left(given(c)))
				for _, sub := range subsetsOf(list) {
					if len(sub) != n {
						continue
					}
					p := scored(h, sub, list, n)
					if other := costOf([]job.Host{h}, []*part{&p}); other != c.Cost {
						continue
					}
					switch other := sizes(left(sub)); {
					case other > kept:
						t.Fatalf("%d of %v: %v leaves sets of %d sizes, %v of %d", n, list, given(c), kept, sub, other)
					case other < kept:
						broken++
					}
				}
			}
		}
		if broken == 0 {
			t.Error("no choice of the same cost breaks anything: the test says nothing")
		}
	}
}
