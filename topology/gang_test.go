package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// check holds a choice, or its absence, against the brute force.
func check(t *testing.T, want Want, inventory job.Inventory, not job.Excluded) (Choice, bool) {
	t.Helper()
	c, err := PlaceGPUs(want, inventory, not)
	best, found := brute(want, inventory, not, false)
	var none *NoPlacement
	if errors.As(err, &none) {
		if found {
			t.Fatalf("%+v: %v; want %v", want, err, best)
		}
		_, ever := brute(want, inventory, not, true)
		if none.Ever != ever || none.Hint == "" || none.Ever != (len(none.Way) > 0) {
			t.Fatalf("%+v: %+v; ever is %v", want, none, ever)
		}
		for _, b := range none.Way {
			if b.Busy == "" || none.Ever && !strings.Contains(none.Text, none.Way[0].Device) {
				t.Fatalf("in the way is %+v, of %q", b, none.Text)
			}
		}
		return c, false
	}
	if err != nil {
		t.Fatal(err)
	}
	if !found || c.Cost != best {
		t.Fatalf("%+v: the cost is %v, want %v (found %v)\n%v", want, c.Cost, best, found, c.Placement.Ranks)
	}
	verify(t, want, inventory, not, c)
	if r := c.RunnerUp; r != nil {
		if better(r.Cost, c.Cost) {
			t.Fatalf("the runner-up is better: %v than %v", r.Cost, c.Cost)
		}
		if slices.EqualFunc(r.Placement.Ranks, c.Placement.Ranks, func(a, b job.Rank) bool { return a.Host == b.Host && slices.Equal(a.Devices, b.Devices) }) {
			t.Fatal("the runner-up is the same")
		}
		verify(t, want, inventory, not, *r)
		if (len(r.Why) == 0) != (r.Cost == c.Cost) {
			t.Fatalf("costs %v and %v differ in %q", c.Cost, r.Cost, r.Why)
		}
	}
	return c, true
}

// verify scores what was placed and holds it against what is said of it.
func verify(t *testing.T, want Want, inventory job.Inventory, not job.Excluded, c Choice) {
	t.Helper()
	p := c.Placement
	if len(p.Ranks) != want.Ranks {
		t.Fatalf("%d ranks, want %d", len(p.Ranks), want.Ranks)
	}
	parts := make([]*part, len(inventory.Hosts))
	for i, r := range p.Ranks {
		at := slices.IndexFunc(inventory.Hosts, func(h job.Host) bool { return h.Name == r.Host })
		h := inventory.Hosts[at]
		on := p.On(r.Host)
		if r.Rank != i || p.Hosts[r.Node].Name != r.Host || r.LocalSize != len(on) || on[r.LocalRank].Rank != i || i > 0 && p.Ranks[i-1].Node > r.Node {
			t.Fatalf("rank %d is numbered wrong: %+v", i, r)
		}
		if h.Hard && len(on) > h.Slots {
			t.Fatalf("%d ranks on %d slots", len(on), h.Slots)
		}
		if len(r.Devices) != want.GPUs {
			t.Fatalf("rank %d has %v", i, r.Devices)
		}
		var cpus []string
		for _, uuid := range r.Devices {
			g := slices.IndexFunc(h.Devices, func(d job.Device) bool { return d.UUID == uuid })
			if !slices.Contains(mayUse(h, want.GPUs, not, false), g) {
				t.Fatalf("rank %d has %s, which it must not", i, uuid)
			}
			if parts[at] == nil {
				parts[at] = &part{}
			}
			if slices.Contains(parts[at].gpus, g) {
				t.Fatalf("%s is given twice", uuid)
			}
			parts[at].gpus = append(parts[at].gpus, g)
			cpus = append(cpus, h.Devices[g].CPUs)
		}
		if !maps.Equal(cpuSet(t, r.CPUs), cpuSet(t, cpus...)) {
			t.Fatalf("rank %d has CPUs %q, its GPUs %q", i, r.CPUs, cpus)
		}
	}
	for at, q := range parts {
		if q == nil {
			continue
		}
		h := inventory.Hosts[at]
		order := slices.Clone(q.gpus)
		*q = scored(h, q.gpus, mayUse(h, want.GPUs, not, false), want.Ranks*want.GPUs)
		if want.GPUs == 1 && len(order) > 1 && len(order) <= exact {
			low, sum := NoRing, 0
			for i, g := range order {
				v := linkOf(h, g, order[(i+1)%len(order)])
				low, sum = min(low, v), sum+v
			}
			if best := bestRound(h, order, q.ring); low != q.ring || sum != best {
				t.Fatalf("the ring of host %s in the order of ranks is %d of %d, want %d of %d", h.Name, low, sum, q.ring, best)
			}
		}
		if want.GPUs > 1 {
			sum := 0
			for part := range slices.Chunk(order, want.GPUs) {
				sum += linksAmong(h, part)
			}
			if best := closest(h, order, want.GPUs); sum != best {
				t.Fatalf("the GPUs of the ranks on host %s are joined by %d, want %d", h.Name, sum, best)
			}
		}
	}
	if got := costOf(inventory.Hosts, parts); got != c.Cost {
		t.Fatalf("what was placed costs %v, not %v", got, c.Cost)
	}
	if got := tell(c); got != c.Cost {
		t.Fatalf("its words tell of %v, not of %v: %q", got, c.Cost, c.Words())
	}
	level := job.LocalityAny
	switch {
	case c.Cost.Hosts == 1:
		level = job.LocalityHost
		for at, q := range parts {
			if q != nil && bestIsland(inventory.Hosts[at], q.gpus, want.GPUs, not) {
				level = job.LocalityIsland
			}
		}
	case c.Cost.Racks == 1:
		level = job.LocalityRack
	}
	if c.Level != level {
		t.Fatalf("the level is %s, want %s", c.Level, level)
	}
	if want.Locality != "" && slices.Index(job.Localities(), level) > slices.Index(job.Localities(), want.Locality) {
		t.Fatalf("the level is %s, %s is allowed", level, want.Locality)
	}
}

// tell is the cost that the words for a choice tell of.
func tell(c Choice) Cost {
	sum := func(t census) (sum int) {
		for score, n := range t {
			sum += int(score) * n
		}
		return sum
	}
	worth := func(s spare) int { return sum(s.pairs) + s.islands + s.hosts }
	told := c.Cost
	told.Links = sum(c.facts.pairs)
	told.Left = worth(c.facts.after) - worth(c.facts.before)
	told.NIC = 0
	for score, n := range c.facts.nics {
		if c.gpus() > 1 {
			told.NIC += n * min(5, 6-int(score)/10)
		}
	}
	for _, h := range c.Placement.Hosts {
		if len(Leaves(h)) > exact {
			told.Left = c.Cost.Left // what is taken from a wide host is an estimate
		}
	}
	return told
}

// given lists the indices of the GPUs of a choice in rank order.
func given(c Choice) (list []int) {
	for _, r := range c.Placement.Ranks {
		for _, uuid := range r.Devices {
			var i int
			fmt.Sscanf(uuid[strings.LastIndex(uuid, "GPU"):], "GPU%d", &i)
			list = append(list, i)
		}
	}
	return list
}

// TestMachines places gangs of 1, 2, 3, 4 and 8 on every named machine, empty and
// half busy, against the brute force.
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

// TestByHand holds placements that a person can see to be right.
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

// TestAlone holds what is said of a gang without a runner-up.
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

// TestUnknownLinks holds that nothing is said of how well GPUs are joined where
// that is not known.
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

// TestSlices holds that ranks of several GPUs get no MIG instances, and are told so.
func TestSlices(t *testing.T) {
	two := []job.Host{sliced("a"), sliced("b")} // a whole GPU each, and five instances
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

// TestSlotLimits holds that stated slots are named where they set how much room there is.
func TestSlotLimits(t *testing.T) {
	const topo = "; see what GPUs there are with: gangrun topo"
	sick := pairs("h")
	sick.Devices[0].Sick = "fell off the bus"
	for _, test := range []struct {
		name, text, hint string
		want             Want
		hosts            []job.Host
		not              job.Excluded
	}{
		{"slots alone", "2 GPUs will never fit: there is room for 1 at most, as slots are stated: 1 of host h",
			"ask for fewer ranks, or state more slots", Want{2, 1, ""}, []job.Host{slotted(pairs("h"), 1)}, job.Excluded{}},
		{"slots of one of two", "8 GPUs will never fit: there is room for 6 at most, as slots are stated: 2 of host b",
			"ask for fewer ranks, or state more slots", Want{8, 1, ""}, []job.Host{pairs("a"), slotted(pairs("b"), 2)}, job.Excluded{}},
		{"slots, and too few GPUs", "9 GPUs will never fit: there is room for 6 at most, as slots are stated: 2 of host b",
			"ask for fewer ranks, or for more hosts" + topo, Want{9, 1, ""}, []job.Host{slotted(pairs("a"), 4), slotted(pairs("b"), 2)}, job.Excluded{}},
		{"slots on one host", "4 GPUs on one host will never fit: there is room for 2 at most, on host a, as slots are stated: 2 of host a, 1 of host b",
			"ask for fewer ranks, or state more slots", Want{4, 1, job.LocalityHost}, []job.Host{slotted(pairs("a"), 2), slotted(pairs("b"), 1)}, job.Excluded{}},
		{"slots, or a wider locality", "4 GPUs on one host will never fit: there is room for 3 at most, on host a, as slots are stated: 3 of host a, 1 of host b",
			"ask for fewer ranks, or state more slots, or allow a wider locality than host", Want{4, 1, job.LocalityHost}, []job.Host{slotted(pairs("a"), 3), slotted(pairs("b"), 1)}, job.Excluded{}},
		{"slots that limit nothing", "5 GPUs will never fit: there is room for 4 at most",
			"ask for fewer ranks, or for more hosts" + topo, Want{5, 1, ""}, []job.Host{slotted(pairs("a"), 4)}, job.Excluded{}},
		{"a sick GPU", "4 GPUs will never fit: there is room for 3 at most",
			"ask for fewer ranks, or for more hosts; see which GPUs are sick or excluded with: gangrun topo", Want{4, 1, ""}, []job.Host{sick}, job.Excluded{}},
		{"an excluded host", "8 GPUs will never fit: there is room for 4 at most",
			"ask for fewer ranks, or for more hosts; see which GPUs are sick or excluded with: gangrun topo", Want{8, 1, ""}, []job.Host{pairs("a"), pairs("b")}, job.Excluded{Hosts: []string{"b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			holdNone(t, test.want, test.hosts, test.not, false, test.text, test.hint)
		})
	}
}

// holdNone holds what is said of a gang that does not fit.
func holdNone(t *testing.T, want Want, hosts []job.Host, not job.Excluded, ever bool, text, hint string) {
	t.Helper()
	if _, ok := check(t, want, job.Inventory{Hosts: hosts}, not); ok {
		t.Fatal("it fits")
	}
	_, err := PlaceGPUs(want, job.Inventory{Hosts: hosts}, not)
	var none *NoPlacement
	if !errors.As(err, &none) || none.Ever != ever || none.Text != text || none.Hint != hint {
		t.Errorf("got %+v\nwant %q, hint %q, ever %v", none, text, hint, ever)
	}
}

// slotted gives a host slots that are stated.
func slotted(h job.Host, slots int) job.Host {
	h.Slots, h.Hard = slots, true
	return h
}

// uncut is cut with GPUs in the place of its instances.
func uncut(name string) job.Host {
	h := cut(name)
	for i := range h.Devices {
		h.Devices[i].GPU = ""
	}
	return h
}

// TestNowhere says why a gang does not fit, and whether it ever will.
func TestNowhere(t *testing.T) {
	half := []job.Host{in(busy(dgx1v("a"), 1, 3, 4, 6), "r1", ""), in(busy(hgxH100("b"), 0, 1, 2, 3, 4), "r2", "")}
	tests := []struct {
		name  string
		want  Want
		hosts []job.Host
		not   job.Excluded
		ever  bool
		way   int
		text  string
	}{
		{"too many busy on one host", Want{8, 1, job.LocalityHost}, half, job.Excluded{}, true, 9,
			"8 GPUs on one host do not fit now: there is room for 4, on host a; busy: a-GPU1 of a (run 1 of ann), a-GPU3 of a (run 3 of ann), a-GPU4 of a (run 4 of ann), a-GPU6 of a (run 6 of ann), b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann) and 3 more"},
		{"only the host that is not excluded", Want{8, 1, job.LocalityHost}, half, job.Excluded{Hosts: []string{"a"}}, true, 5,
			"8 GPUs on one host do not fit now: there is room for 3, on host b; busy: b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann), b-GPU2 of b (run 2 of ann), b-GPU3 of b (run 3 of ann), b-GPU4 of b (run 4 of ann)"},
		{"too many for one host", Want{9, 1, job.LocalityHost}, half, job.Excluded{}, false, 0,
			"9 GPUs on one host will never fit: there is room for 8 at most, on host a"},
		{"an island in use", Want{2, 1, job.LocalityIsland}, []job.Host{busy(pairs("a"), 1, 3)}, job.Excluded{}, true, 2,
			"2 GPUs on one island do not fit now: those that are free on one host are joined worse than others of it; busy: a-GPU1 of a (run 1 of ann), a-GPU3 of a (run 3 of ann)"},
		{"a rack in use", Want{3, 2, job.LocalityRack}, half, job.Excluded{}, true, 9,
			"3 ranks of 2 GPUs in one rack do not fit now: there is room for 4, in rack r1; busy: a-GPU1 of a (run 1 of ann), a-GPU3 of a (run 3 of ann), a-GPU4 of a (run 4 of ann), a-GPU6 of a (run 6 of ann), b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann) and 3 more"},
		{"one rank that must wait", Want{1, 8, ""}, half[1:], job.Excluded{}, true, 5,
			"1 rank of 8 GPUs does not fit now: there is room for 0; busy: b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann), b-GPU2 of b (run 2 of ann), b-GPU3 of b (run 3 of ann), b-GPU4 of b (run 4 of ann)"},
		{"a rank wider than a host", Want{2, 9, ""}, half, job.Excluded{}, false, 0,
			"2 ranks of 9 GPUs will never fit: no host has 9 GPUs and a slot that a rank may use"},
		{"nothing there", Want{1, 1, ""}, nil, job.Excluded{}, false, 0,
			"1 GPU will never fit: no host has 1 GPU and a slot that a rank may use"},
		{"an excluded GPU", Want{16, 1, ""}, half, job.Excluded{Devices: []string{"b/b-GPU7", "a/b-GPU6", "b-GPU5"}}, false, 0,
			"16 GPUs will never fit: there is room for 15 at most"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := PlaceGPUs(test.want, job.Inventory{Hosts: test.hosts}, test.not)
			var none *NoPlacement
			if !errors.As(err, &none) {
				t.Fatalf("got %v, want no placement", err)
			}
			if none.Text != test.text || none.Ever != test.ever || len(none.Way) != test.way || none.Hint == "" {
				t.Errorf("got %q, ever %v, %d in the way, hint %q; want %q, %v, %d", none.Text, none.Ever, len(none.Way), none.Hint, test.text, test.ever, test.way)
			}
		})
	}
	for _, want := range []Want{{1, 1, "far"}, {0, 1, ""}, {1, 0, ""}, {-1, 1, ""}} {
		var none *NoPlacement
		if _, err := PlaceGPUs(want, job.Inventory{Hosts: half}, job.Excluded{}); err == nil || errors.As(err, &none) {
			t.Errorf("%+v: %v, want another error", want, err)
		}
	}
}

// TestLarge places gangs on more hosts than the brute force can follow: all that
// is said of them is true, and racks and hosts are as few as can be.
func TestLarge(t *testing.T) {
	for _, test := range []struct {
		hosts, ranks, rack int // hosts in a rack; 0 is no racks
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
