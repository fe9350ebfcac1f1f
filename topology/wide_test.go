package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSixteen compares placements on hosts of 16 GPUs, of which half are busy, with the brute force.
func TestSixteen(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 16))
	for n := range 12 {
		h := randomHost(r, "h", len(named), n%3, 1)
		if n%4 == 0 {
			h = sixteen("h")
		} else {
			h.Devices, h.Links, h.NICs = nil, nil, nil
			words := []job.Link{"NV1", "NV2", "PIX", "PHB", "NODE", "SYS"}
			for i := range 16 {
				h.Devices = append(h.Devices, job.Device{UUID: fmt.Sprint("h-GPU", i), Index: i})
				h.Links = append(h.Links, make([]job.Link, 16))
				for j := range i {
					h.Links[i][j] = words[r.IntN(len(words))]
					h.Links[j][i] = h.Links[i][j]
				}
			}
		}
		for _, i := range r.Perm(16)[:8] {
			busy(h, i)
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			check(t, Want{1 + n%4, 1, ""}, job.Inventory{Hosts: []job.Host{h}}, job.Excluded{})
		})
	}
}

// TestSixteenFull places gangs on a whole host of 16 GPUs, where the right result is obvious.
func TestSixteenFull(t *testing.T) {
	for n, want := range map[int]Cost{
		1:  {1, 1, 1, NoRing, 0, 0, -602},
		8:  {1, 1, 1, 600, 28 * 600, 40, -2402},
		9:  {1, 1, 1, 300, 28*600 + 8*300, 45, -3002},
		16: {1, 1, 1, 300, 2*28*600 + 64*300, 80, -4802},
	} {
		c, err := PlaceGPUs(Want{n, 1, ""}, job.Inventory{Hosts: []job.Host{sixteen("h")}}, job.Excluded{})
		if err != nil || c.Cost != want || c.Level != job.LocalityIsland {
			t.Errorf("%d: %v, %s, %v; want %v", n, err, c.Level, c.Cost, want)
		}
	}
}

// TestWide places gangs on a host of 56 MIG instances.
func TestWide(t *testing.T) {
	all := job.Inventory{Hosts: []job.Host{cut("h")}}
	used := cut("h")
	for i := range used.Devices {
		if i%8 > 3 && i/8 != 5 { // GPU 5 has all seven free, the others three
			busy(used, i)
		}
	}
	boards := busy(cut("h")) // eight boards with eight GPUs each, of which about half are free
	boards.Devices = slices.Clone(used.Devices)
	for i := range boards.Devices {
		boards.Devices[i].GPU = ""
	}
	leftover := cut("h")
	busy(leftover, 9, 10, 11, 12, 15, 17, 18, 19, 20, 21, 22)
	tests := []struct {
		name  string
		want  Want
		host  job.Host
		ring  int
		gpus  []int // sorted; nil is not said
		level job.Locality
	}{
		{"one GPU's worth", Want{7, 1, ""}, all.Hosts[0], 60, []int{1, 2, 3, 4, 5, 6, 7}, job.LocalityIsland},
		{"the GPU that is whole", Want{7, 1, ""}, used, 60, []int{41, 42, 43, 44, 45, 46, 47}, job.LocalityIsland},
		{"a leftover", Want{1, 1, ""}, leftover, NoRing, []int{23}, job.LocalityIsland},
		{"two halves of a socket", Want{14, 1, ""}, all.Hosts[0], 20, nil, job.LocalityIsland},
		{"all of them", Want{56, 1, ""}, all.Hosts[0], 10, nil, job.LocalityIsland},
		{"ranks of several, on both sockets", Want{12, 2, ""}, boards, 10, nil, job.LocalityHost},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := PlaceGPUs(test.want, job.Inventory{Hosts: []job.Host{test.host}}, job.Excluded{})
			if err != nil {
				t.Fatal(err)
			}
			gpus := given(c)
			slices.Sort(gpus)
			if test.gpus != nil && !slices.Equal(gpus, test.gpus) {
				t.Errorf("GPUs %v, want %v", gpus, test.gpus)
			}
			free := mayUse(test.host, test.want.GPUs, job.Excluded{}, false)
			if len(slices.Compact(slices.Clone(gpus))) != test.want.Ranks*test.want.GPUs || slices.ContainsFunc(gpus, func(g int) bool { return !slices.Contains(free, g) }) {
				t.Errorf("GPUs %v are not free, or not as many as wanted", gpus)
			}
			if c.Cost.Bottleneck != test.ring || c.Cost.Links != linksAmong(test.host, gpus) || c.Level != test.level || c.Cost.Left > 0 {
				t.Errorf("%s, %v; want %s with a ring of %d", c.Level, c.Cost, test.level, test.ring)
			}
		})
	}
}

func TestNICs(t *testing.T) {
	h := dgx1v("h")
	tests := []struct {
		name string
		host job.Host
		gpus []int
		want []string
	}{
		{"one", h, []int{0}, []string{"mlx5_0"}},
		{"two on one switch", h, []int{4, 5}, []string{"mlx5_2"}},
		{"two apart", h, []int{0, 7}, []string{"mlx5_0", "mlx5_3"}},
		{"several as near", dgxA100("h"), []int{2}, []string{"mlx5_2", "mlx5_3"}},
		{"none known", sixteen("h"), []int{2}, nil},
	}
	for _, test := range tests {
		var uuids []string
		for _, g := range test.gpus {
			uuids = append(uuids, test.host.Devices[g].UUID)
		}
		if got := NICs(test.host, uuids); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
