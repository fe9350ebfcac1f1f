package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestMachines places gangs of 1, 2, 3, 4 and 8 ranks on every named machine, empty and half busy. It compares
// the placements with the brute force.
func TestMachines(t *testing.T) {
	for _, m := range named {
		for _, use := range [][]int{nil, {0, 2, 4, 6}, {0, 1, 2, 3}, {1, 3, 4, 6}, {0, 3, 5, 7}} {
			h := m.make("h")
			for _, i := range use {
				if i < len(h.Devices) {
					busy(h, i)
				}
			}
			for _, n := range []int{1, 2, 3, 4, 8} {
				for _, l := range []job.Locality{job.LocalityIsland, job.LocalityAny} {
					t.Run(fmt.Sprintf("%s/busy%v/%d/%s", m.name, use, n, l), func(t *testing.T) {
						want, inventory := Want{n, 1, l}, job.Inventory{Hosts: []job.Host{h}}
						if c, ok := check(t, want, inventory, job.Excluded{}); ok {
							new(rival).hold(t, want, inventory, job.Excluded{}, c)
						}
					})
				}
			}
		}
	}
}

// TestByHand checks placements that a person can see to be right.
func TestByHand(t *testing.T) {
	tests := []struct {
		name  string
		want  Want
		hosts []job.Host
		gpus  []int // indices in rank order
		on    string
		level job.Locality
		cost  Cost
	}{
		{"two V100s by two links", Want{2, 1, ""}, []job.Host{busy(dgx1v("h"), 2, 4, 5, 6, 7)}, []int{0, 3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 200, 200, 2, -200}},
		{"eight V100s along the ring of double links", Want{8, 1, ""}, []job.Host{dgx1v("h")}, []int{0, 3, 2, 1, 5, 6, 7, 4}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 200, 200*8 + 100*8 + 10*12, 8, -802}},
		{"the two that are left are far apart", Want{2, 1, ""}, []job.Host{busy(dgx1v("h"), 1, 2, 3, 4, 5, 6)}, []int{0, 7}, "h", job.LocalityHost,
			Cost{1, 1, 1, 10, 10, 2, -10}},
		{"four H100s", Want{4, 1, ""}, []job.Host{hgxH100("h")}, []int{0, 1, 2, 3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 1800, 6 * 1800, 4, -3602}},
		{"a leftover, not half a pair", Want{1, 1, ""}, []job.Host{busy(pairs("h"), 1)}, []int{0}, "h", job.LocalityIsland,
			Cost{1, 1, 1, NoRing, 0, 0, 0}},
		{"the leftover with no NIC", Want{1, 1, ""}, []job.Host{busy(pairs("h"), 2)}, []int{3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, NoRing, 0, 0, 0}},
		{"a host in use, not a whole one", Want{1, 1, ""}, []job.Host{hgxH100("a"), busy(hgxH100("b"), 0, 1, 2, 3, 4, 5)}, []int{6}, "b", job.LocalityIsland,
			Cost{1, 1, 1, NoRing, 0, 0, -1800}},
		{"a pair by its bridge", Want{2, 1, ""}, []job.Host{busy(pairs("h"), 1)}, []int{2, 3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 400, 400, 10, -401}},
		{"one switch, then one socket", Want{3, 1, ""}, []job.Host{pcie("h")}, []int{0, 2, 3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 40, 130, 4, -103}},
		{"the better socket", Want{4, 1, ""}, []job.Host{pcie("h")}, []int{0, 1, 2, 3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 40, 260, 6, -103}},
		{"slices, never the GPU that is cut", Want{3, 1, ""}, []job.Host{sliced("h")}, []int{1, 2, 3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 60, 180, 3, -82}},
		{"any four of an A100 machine, behind as few NICs' switches", Want{4, 1, ""}, []job.Host{busy(dgxA100("h"), 1, 2)}, []int{0, 3, 4, 5}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 1200, 6 * 1200, 8, -2400}},
		{"the machine of the mix with the best-connected GPUs", Want{2, 1, ""}, []job.Host{sliced("a"), pcie("b"), pairs("c"), dgx1v("d")}, []int{0, 1}, "c", job.LocalityIsland,
			Cost{1, 1, 1, 400, 400, 6, -402}},
		{"two ranks of a pair each", Want{2, 2, ""}, []job.Host{pairs("h")}, []int{0, 1, 2, 3}, "h", job.LocalityIsland,
			Cost{1, 1, 1, 10, 840, 16, -803}},
		{"one rack before one better host", Want{4, 1, ""}, []job.Host{
			in(busy(hgxH100("a"), 0, 1, 2, 3, 4, 5), "r1", "s"), in(pairs("b"), "r2", "s"), in(busy(hgxH100("c"), 0, 1, 2, 3, 4, 5), "r1", "s"),
		}, []int{0, 1, 2, 3}, "b", job.LocalityIsland, Cost{1, 1, 1, 10, 840, 16, -803}},
		{"two hosts of one rack", Want{4, 1, ""}, []job.Host{
			in(busy(hgxH100("a"), 0, 1, 2, 3, 4, 5), "r1", "s"), in(busy(hgxH100("b"), 0, 1, 2, 3, 4, 5), "r2", "s"), in(busy(hgxH100("c"), 0, 1, 2, 3, 4, 5), "r1", "s"),
		}, []int{6, 7, 6, 7}, "a a c c", job.LocalityRack, Cost{1, 1, 2, 1800, 3600, 4, -3600}},
		{"two racks", Want{2, 2, ""}, []job.Host{
			in(busy(hgxH100("a"), 0, 1, 2, 3, 4, 5), "r1", "s"), in(busy(hgxH100("b"), 0, 1, 2, 3, 4, 5), "r2", "s"),
		}, []int{6, 7, 6, 7}, "a b", job.LocalityAny, Cost{2, 2, 2, 1800, 3600, 4, -3600}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, ok := check(t, test.want, job.Inventory{Hosts: test.hosts}, job.Excluded{})
			if !ok {
				t.Fatal("no placement")
			}
			var on []string
			for _, r := range c.Placement.Ranks {
				on = append(on, r.Host)
			}
			if got := strings.Join(slices.Compact(on), " "); got != strings.Join(slices.Compact(strings.Fields(test.on)), " ") {
				t.Errorf("on %s, want %s", got, test.on)
			}
			if got := given(c); !slices.Equal(got, test.gpus) {
				t.Errorf("GPUs %v, want %v", got, test.gpus)
			}
			if c.Level != test.level || c.Cost != test.cost {
				t.Errorf("%s, %v; want %s, %v", c.Level, c.Cost, test.level, test.cost)
			}
			if len(c.Why) < 2 {
				t.Errorf("why is only %q", c.Why)
			}
		})
	}
}

// TestAlone checks what is said about a gang without a runner-up.
func TestAlone(t *testing.T) {
	blind := hgxH100("h")
	blind.Links = nil
	whole := slotted(dgx1v("h"), 8)
	for _, test := range []struct {
		name  string
		want  Want
		hosts []job.Host
		last  string
	}{
		{"an island like others", Want{2, 1, job.LocalityIsland}, []job.Host{hgxH100("h")}, "other free GPUs of host h would do as well"},
		{"a host like others", Want{2, 1, job.LocalityHost}, []job.Host{hgxH100("h")}, "other free GPUs of host h would do as well"},
		{"links that are not known", Want{2, 1, job.LocalityIsland}, []job.Host{blind}, "other free GPUs of host h would do as well"},
		{"all that is free", Want{8, 1, ""}, []job.Host{whole}, "there is no other way to place it"},
		{"the only island", Want{2, 1, job.LocalityIsland}, []job.Host{busy(pairs("h"), 3)}, "there is no other way to place it on one island"},
		{"all of one host", Want{4, 1, job.LocalityHost}, []job.Host{pairs("h")}, "there is no other way to place it on one host"},
		{"one of two hosts", Want{12, 1, ""}, []job.Host{hgxH100("a"), hgxH100("b")}, "it cannot be placed without host b"},
		{"one of two hosts of a rack", Want{12, 1, job.LocalityRack}, []job.Host{hgxH100("a"), hgxH100("b")}, "it cannot be placed in one rack without host b"},
		{"a wide host", Want{64, 1, ""}, []job.Host{uncut("h")}, "there is no other way to place it"},
		{"twins of a wide host", Want{8, 1, job.LocalityIsland}, []job.Host{busy(uncut("h"), 40)}, "other free GPUs of host h would do as well"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := PlaceGPUs(test.want, job.Inventory{Hosts: test.hosts}, job.Excluded{})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Why[len(c.Why)-1]; got != test.last || c.RunnerUp != nil {
				t.Errorf("got %q, runner-up %v; want %q", got, c.RunnerUp, test.last)
			}
		})
	}
}

// TestUnknownLinks checks that nothing is said about how well GPUs are connected if it is not known.
func TestUnknownLinks(t *testing.T) {
	blind := hgxH100("h")
	blind.Links = nil
	c, ok := check(t, Want{3, 1, ""}, job.Inventory{Hosts: []job.Host{blind}}, job.Excluded{})
	if !ok || c.UnknownLinks() != 3 {
		t.Fatalf("%d pairs, want 3", c.UnknownLinks())
	}
	want := []string{"host h gives 3 of 8 free GPUs", "how GPUs are linked is not known of 3 pairs of its GPUs that share a host: they count as joined worst", "other free GPUs of host h would do as well"}
	if !slices.Equal(c.Why, want) {
		t.Errorf("why %q, want %q", c.Why, want)
	}
	if c, _ := check(t, Want{3, 1, ""}, job.Inventory{Hosts: []job.Host{hgxH100("h")}}, job.Excluded{}); c.UnknownLinks() != 0 {
		t.Errorf("%d pairs of an HGX are joined in unknown ways", c.UnknownLinks())
	}
}

// TestSlices checks that ranks of several GPUs get no MIG instances, and that the user is told so.
func TestSlices(t *testing.T) {
	two := []job.Host{sliced("a"), sliced("b")} // each has one whole GPU and five instances
	c, ok := check(t, Want{12, 1, ""}, job.Inventory{Hosts: two}, job.Excluded{})
	if !ok || len(c.Placement.Ranks) != 12 {
		t.Fatal("ranks of one GPU get instances")
	}
	mixed := pcieCut("c")
	c, ok = check(t, Want{3, 2, ""}, job.Inventory{Hosts: []job.Host{mixed}}, job.Excluded{})
	if !ok || slices.Contains(given(c), 3) {
		t.Fatalf("GPUs %v: device 3 is an instance", given(c))
	}
	for _, test := range []struct {
		name, text, hint string
		want             Want
		hosts            []job.Host
		ever             bool
	}{
		{"never", "1 rank of 2 GPUs will never fit: no host has 2 GPUs and a slot that a rank may use",
			"ask for fewer ranks, or for more hosts; see what GPUs there are with: gangrun topo; ranks of several GPUs get no MIG instances, of which a CUDA process sees one only: 10 instances can be used by ranks of 1 GPU",
			Want{1, 2, ""}, two, false},
		{"not now", "3 ranks of 2 GPUs do not fit now: there is room for 4; busy: c-GPU7 of c (run 7 of ann)",
			"wait until they are free, or ask for fewer ranks; ranks of several GPUs get no MIG instances, of which a CUDA process sees one only: 1 instance can be used by ranks of 1 GPU",
			Want{3, 2, ""}, []job.Host{busy(pcieCut("c"), 7)}, true},
		{"no instances", "5 ranks of 2 GPUs will never fit: there is room for 8 at most", "ask for fewer ranks, or for more hosts; see what GPUs there are with: gangrun topo",
			Want{5, 2, ""}, []job.Host{hgxH100("h")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			holdNone(t, test.want, test.hosts, job.Excluded{}, test.ever, test.text, test.hint)
		})
	}
}

// TestLarge places gangs on more hosts than the brute force can handle. Everything that is said about the
// placements must be true, and there must be as few racks and hosts as possible.
func TestLarge(t *testing.T) {
	for _, test := range []struct {
		hosts, ranks, rack int // rack is the number of hosts of a rack; 0 means no racks
	}{{200, 150, 0}, {200, 600, 0}, {100, 100, 4}, {100, 300, 4}, {100, 60, 10}, {60, 40, 1}} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			inventory := cluster(test.hosts, test.rack)
			want := Want{test.ranks, 1, ""}
			c, err := PlaceGPUs(want, inventory, job.Excluded{})
			if err != nil {
				t.Fatal(err)
			}
			verify(t, want, inventory, job.Excluded{}, c)
			if c.RunnerUp == nil {
				t.Fatal("no runner-up")
			}
			verify(t, want, inventory, job.Excluded{}, *c.RunnerUp)
			if c.RunnerUp.Cost.Compare(c.Cost) < 0 {
				t.Errorf("the runner-up costs %v, the chosen %v", c.RunnerUp.Cost, c.Cost)
			}
			racks := map[string]int{}
			var hosts []int
			for _, h := range inventory.Hosts {
				n := len(mayUse(h, 1, job.Excluded{}, false))
				racks[h.Rack] += n
				hosts = append(hosts, n)
			}
			fewest := func(rooms []int) (n int) {
				slices.Sort(rooms)
				slices.Reverse(rooms)
				for left := test.ranks; left > 0; n++ {
					left -= rooms[n]
				}
				return n
			}
			if n := fewest(slices.Collect(maps.Values(racks))); c.Cost.Racks != n {
				t.Errorf("%d racks, want %d", c.Cost.Racks, n)
			}
			if n := fewest(hosts); test.rack == 0 && c.Cost.Hosts != n {
				t.Errorf("%d hosts, want %d", c.Cost.Hosts, n)
			}
		})
	}
}
