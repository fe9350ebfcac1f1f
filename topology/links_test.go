package topology

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestLinks(t *testing.T) {
	for _, test := range []struct {
		link  job.Link
		score int
		words string
	}{
		{"NV18", 1800, "18 NVLinks"}, {"NV1", 100, "1 NVLink"},
		{job.LinkPSB, 60, "on one board"}, {job.LinkPIX, 50, "through one PCIe switch"},
		{job.LinkPXB, 40, "through several PCIe switches"}, {job.LinkPHB, 30, "through the PCIe host bridge of a CPU"},
		{job.LinkNODE, 20, "through several PCIe host bridges of one NUMA node"},
		{job.LinkSYS, 10, "through the interconnect between CPU sockets, the slowest way"}, {"", 0, "not known"},
	} {
		if got := Score(test.link); got != test.score {
			t.Errorf("%q is worth %d, want %d", test.link, got, test.score)
		}
		if got := LinkOf(test.score); got != test.link {
			t.Errorf("%d is the score of %q, want %q", test.score, got, test.link)
		}
		if got := LinkWords(test.link); got != test.words {
			t.Errorf("%q is %q, want %q", test.link, got, test.words)
		}
	}
	for _, odd := range []job.Link{"NV", "NV-1", "NV300", "NVX", "nv2", "XYZ"} {
		if Score(odd) != 0 || NVLinks(odd) != 0 || LinkWords(odd) != "not known" {
			t.Errorf("%q is worth %d, %d NVLinks, %q", odd, Score(odd), NVLinks(odd), LinkWords(odd))
		}
	}
	for _, odd := range []int{-10, 5, 70, 150, NoRing} {
		if got := LinkOf(odd); got != "" {
			t.Errorf("%d is the score of %q, want none", odd, got)
		}
	}
}

func TestIslands(t *testing.T) {
	blind := machine("h", "X\nX\nX")
	blind.Links = nil
	shuffled := sliced("h")
	slices.Reverse(shuffled.Devices)
	for _, l := range shuffled.Links {
		slices.Reverse(l)
	}
	slices.Reverse(shuffled.Links)
	for _, test := range []struct {
		name   string
		host   job.Host
		want   [][]int
		leaves []int
	}{
		{"a mesh", dgx1v("h"), [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"pairs", pairs("h"), [][]int{{0, 1}, {2, 3}}, []int{0, 1, 2, 3}},
		{"MIG instances, without their GPUs", sliced("h"), [][]int{{1, 2, 3}, {5, 6}, {7}}, []int{1, 2, 3, 5, 6, 7}},
		{"GPUs behind their MIG instances", shuffled, [][]int{{0}, {1, 2}, {4, 5, 6}}, []int{0, 1, 2, 4, 5, 6}},
		{"links that are not known", blind, [][]int{{0, 1, 2}}, []int{0, 1, 2}},
		{"no GPUs", job.Host{}, nil, []int{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Islands(test.host); !reflect.DeepEqual(got, test.want) {
				t.Errorf("islands %v, want %v", got, test.want)
			}
			if got := Leaves(test.host); !slices.Equal(got, test.leaves) {
				t.Errorf("leaves %v, want %v", got, test.leaves)
			}
		})
	}
}

// TestNeverAGPUAndItsInstances places gangs until nothing is left, on machines whose inventory lists GPUs and
// their MIG instances in any order. A GPU that is divided must never be given to a gang, even though it is
// idle.
func TestNeverAGPUAndItsInstances(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for n := range 200 {
		hosts := []job.Host{sliced("a"), shuffle(r, sliced("b")), shuffle(r, pcieCut("c"))}[:1+n%3]
		for i := range hosts {
			for d := range hosts[i].Devices {
				rename(&hosts[i].Devices[d].UUID, hosts[i].Name, "")
				rename(&hosts[i].Devices[d].GPU, hosts[i].Name, "")
			}
		}
		room := 0
		for _, h := range hosts {
			room += len(wholeGPUs(h))
		}
		for given := 0; given < room; {
			want := Want{1 + r.IntN(room-given), 1, ""}
			c, err := PlaceGPUs(want, job.Inventory{Hosts: hosts}, job.Excluded{})
			if err != nil {
				t.Fatalf("%d of %d GPUs are free: %v", room-given, room, err)
			}
			for _, rank := range c.Placement.Ranks {
				i := slices.IndexFunc(hosts, func(h job.Host) bool { return h.Name == rank.Host })
				for j := range hosts[i].Devices {
					d := &hosts[i].Devices[j]
					if d.UUID != rank.Devices[0] {
						continue
					}
					if d.Busy != "" || slices.ContainsFunc(hosts[i].Devices, func(part job.Device) bool { return part.GPU == d.UUID }) {
						t.Fatalf("rank %d has %s of %s, which is in use or cut", rank.Rank, d.UUID, rank.Host)
					}
					d.Busy = fmt.Sprint("run ", given)
					given++
				}
			}
		}
		if _, err := PlaceGPUs(Want{1, 1, ""}, job.Inventory{Hosts: hosts}, job.Excluded{}); err == nil {
			t.Fatal("a GPU is given though every instance is in use")
		}
		if _, err := PlaceGPUs(Want{room + 1, 1, ""}, job.Inventory{Hosts: hosts}, job.Excluded{}); err == nil || ever(err) {
			t.Fatalf("%d GPUs of %d could be had one day: %v", room+1, room, err)
		}
	}
}

func ever(err error) bool {
	none, ok := err.(*NoPlacement)
	return ok && none.Ever
}

// pcieCut returns eight PCIe GPUs, of which the fourth is an instance of the first.
func pcieCut(name string) job.Host {
	h := pcie(name)
	h.Devices[3].GPU = h.Devices[0].UUID
	return h
}

// shuffle changes the order of the GPUs of a host.
func shuffle(r *rand.Rand, h job.Host) job.Host {
	order := r.Perm(len(h.Devices))
	to := h
	to.Devices, to.Links, to.NICs = nil, nil, nil
	for _, a := range order {
		to.Devices = append(to.Devices, h.Devices[a])
		var links []job.Link
		for _, b := range order {
			links = append(links, h.Links[a][b])
		}
		to.Links = append(to.Links, links)
	}
	return to
}

// TestWords checks what is said about some choices.
func TestWords(t *testing.T) {
	const sys = "SYS (through the interconnect between CPU sockets, the slowest way)"
	mixed := []job.Host{in(busy(pcie("p"), 0), "r1", ""), in(busy(dgx1v("v"), 0, 2, 5), "r2", "")}
	far := pairs("far")
	far.NICs = nil
	for _, test := range []struct {
		name             string
		want             Want
		hosts            []job.Host
		words, why, cost []string
	}{
		{"NVLinks, not sockets", Want{2, 1, ""}, []job.Host{busy(pairs("h"), 3)}, []string{
			"1 rack, 1 switch, 1 host",
			"slowest link on the best ring through its GPUs: NV4 (4 NVLinks)",
			"its pairs of GPUs: 1 by NV4",
			"its nearest NICs: 2 by PHB (through the PCIe host bridge of a CPU)",
			"it takes from the pairs, islands and hosts that are free: 1 pair by NV4, 1 whole island",
		}, []string{
			"host h gives 2 of 3 free GPUs",
			"no 2 GPUs of host h are joined better",
			"the slowest link on the best ring through its GPUs, which all-reduce goes along, is NV4 (4 NVLinks)",
			"better than the runner-up, on other GPUs of it: the slowest link on the ring through its GPUs is NV4 (4 NVLinks) instead of " + sys,
		}, []string{
			"the slowest link on the ring through its GPUs is " + sys + " instead of NV4 (4 NVLinks)",
			"its pairs of GPUs are joined: 1 by SYS, instead of 1 by NV4",
			"the nearest NICs of its GPUs are 1 by PHB (through the PCIe host bridge of a CPU), 1 by SYS instead of 2 by PHB",
		}},
		{"a leftover", Want{1, 1, ""}, []job.Host{busy(pairs("h"), 1)}, []string{
			"1 rack, 1 switch, 1 host",
			"it takes from the pairs, islands and hosts that are free: nothing",
		}, []string{
			"host h gives 1 of 3 free GPUs",
			"better than the runner-up, on other GPUs of it: it takes from the pairs, islands and hosts that are free: nothing, instead of 1 pair by NV4 (4 NVLinks), 1 whole island, but leaves 1 pair by " + sys,
		}, nil},
		{"NICs that are not known, and one rack before two", Want{3, 1, ""}, []job.Host{in(busy(far, 3), "r1", ""), in(busy(pairs("b"), 0, 1, 2), "r2", ""), in(busy(pairs("c"), 0, 1), "r3", "")}, []string{
			"1 rack, 1 switch, 1 host",
			"slowest link on the best ring through its GPUs: " + sys,
			"its pairs of GPUs: 1 by NV4 (4 NVLinks), 2 by SYS",
			"its nearest NICs: not known",
			"it takes from the pairs, islands and hosts that are free: 1 pair by NV4, 1 whole island",
		}, nil, []string{
			"2 racks instead of 1", "2 switches instead of 1", "2 hosts instead of 1",
			"the slowest link on the ring through its GPUs is NV4 (4 NVLinks) instead of " + sys,
			"its pairs of GPUs are joined: 1 by NV4, instead of 1 by NV4, 2 by SYS",
		}},
		{"no ring on two hosts", Want{2, 1, ""}, []job.Host{busy(pairs("a"), 0, 1, 2), busy(pairs("b"), 0, 1), busy(pairs("c"), 0, 1, 2)}, []string{
			"1 rack, 1 switch, 1 host",
			"slowest link on the best ring through its GPUs: NV4 (4 NVLinks)",
			"its pairs of GPUs: 1 by NV4",
			"its nearest NICs: 2 by " + sys,
			"it takes from the pairs, islands and hosts that are free: 1 pair by NV4, 1 whole island",
		}, nil, []string{
			"2 hosts instead of 1",
			"the slowest link on the ring through its GPUs is none, as no two GPUs share a host, instead of NV4 (4 NVLinks)",
			"its pairs of GPUs are joined: none, as none share a host, instead of 1 by NV4",
			"it takes from the pairs, islands and hosts that are free: nothing, instead of 1 pair by NV4, 1 whole island",
		}},
		{"two machines", Want{3, 1, ""}, mixed, []string{
			"1 rack, 1 switch, 1 host",
			"slowest link on the best ring through its GPUs: NV1 (1 NVLink)",
			"its pairs of GPUs: 2 by NV2 (2 NVLinks), 1 by NV1",
			"its nearest NICs: 3 by PIX (through one PCIe switch)",
			"it takes from the pairs, islands and hosts that are free: 1 pair by NV2",
		}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, ok := check(t, test.want, job.Inventory{Hosts: test.hosts}, job.Excluded{})
			if !ok {
				t.Fatal("no placement")
			}
			if got := c.Words(); !slices.Equal(got, test.words) {
				t.Errorf("words %q\nwant  %q", got, test.words)
			}
			if test.why != nil && !slices.Equal(c.Why, test.why) {
				t.Errorf("why  %q\nwant %q", c.Why, test.why)
			}
			if test.cost != nil && !slices.Equal(c.RunnerUp.Why, test.cost) {
				t.Errorf("the runner-up costs %q\nwant                 %q", c.RunnerUp.Why, test.cost)
			}
		})
	}
	c, _ := check(t, Want{2, 1, ""}, job.Inventory{Hosts: []job.Host{busy(pairs("a"), 0, 1, 2), busy(pairs("b"), 0, 1, 2)}}, job.Excluded{})
	if got := c.Words(); len(got) != 4 || got[1] != "no two of its GPUs share a host" {
		t.Errorf("two GPUs of two hosts: %q", got)
	}
	if got := (Choice{Cost: Cost{Racks: 1, Switches: 1, Hosts: 2, Bottleneck: NoRing}}).Words(); !slices.Equal(got, []string{"1 rack, 1 switch, 2 hosts"}) {
		t.Errorf("a gang without GPUs: %q", got)
	}
}
