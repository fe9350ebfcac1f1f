package topology

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
		if slices.EqualFunc(r.Placement.Ranks, c.Placement.Ranks, func(a, b job.Rank) bool { return slices.Equal(a.Devices, b.Devices) }) {
			t.Fatal("the runner-up is the same")
		}
		verify(t, want, inventory, not, *r)
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
		for j, uuid := range r.Devices {
			g := slices.IndexFunc(h.Devices, func(d job.Device) bool { return d.UUID == uuid })
			if !slices.Contains(mayUse(h, not, false), g) {
				t.Fatalf("rank %d has %s, which it must not", i, uuid)
			}
			if j == 0 && r.CPUs != h.Devices[g].CPUs {
				t.Fatalf("rank %d has CPUs %q", i, r.CPUs)
			}
			if parts[at] == nil {
				parts[at] = &part{}
			}
			if slices.Contains(parts[at].gpus, g) {
				t.Fatalf("%s is given twice", uuid)
			}
			parts[at].gpus = append(parts[at].gpus, g)
		}
	}
	for at, q := range parts {
		if q == nil {
			continue
		}
		h := inventory.Hosts[at]
		order := slices.Clone(q.gpus)
		*q = scored(h, q.gpus, mayUse(h, not, false), want.Ranks*want.GPUs)
		if want.GPUs == 1 && len(order) > 1 && len(order) <= exact {
			low := NoRing
			for i, g := range order {
				low = min(low, linkOf(h, g, order[(i+1)%len(order)]))
			}
			if low != q.ring {
				t.Fatalf("the ring of host %s in the order of ranks is %d, want %d", h.Name, low, q.ring)
			}
		}
	}
	if got := costOf(inventory.Hosts, parts); got != c.Cost {
		t.Fatalf("what was placed costs %v, not %v", got, c.Cost)
	}
	level := job.LocalityAny
	switch {
	case c.Cost.Hosts == 1:
		level = job.LocalityHost
		for at, q := range parts {
			if q != nil && bestIsland(inventory.Hosts[at], q.gpus, not) {
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

// random makes a case that the brute force can follow: one host of up to 8 GPUs,
// or 2 to 4 hosts of up to 4 with racks and switches.
func random(r *rand.Rand) (Want, job.Inventory, job.Excluded) {
	hosts, most := 1, 8
	if r.IntN(2) == 0 {
		hosts, most = 2+r.IntN(3), 4
	}
	var inventory job.Inventory
	var not job.Excluded
	full := 0
	same := r.IntN(2) == 0
	kind, words := r.IntN(len(named)+2), r.IntN(3)
	for i := range hosts {
		if !same {
			kind, words = r.IntN(len(named)+2), r.IntN(3)
		}
		h := randomHost(r, fmt.Sprintf("h%d", i), kind, words, most)
		if r.IntN(3) > 0 {
			h.Rack = []string{"", "r1", "r2"}[r.IntN(3)]
		}
		if r.IntN(3) > 0 {
			h.Switch = []string{"", "s1", "s2"}[r.IntN(3)]
		}
		if r.IntN(8) == 0 {
			h.Hard, h.Slots = true, r.IntN(4)
		}
		if r.IntN(20) == 0 {
			not.Hosts = append(not.Hosts, h.Name)
		}
		share := r.Float64()
		for d := range h.Devices {
			if r.Float64() < share*0.8 {
				h.Devices[d].Busy = "run 7 of bob"
			}
			if r.IntN(25) == 0 {
				h.Devices[d].Sick = "fell off the bus"
			}
			if r.IntN(25) == 0 {
				not.Devices = append(not.Devices, h.Devices[d].UUID)
			}
		}
		full += len(h.Devices)
		inventory.Hosts = append(inventory.Hosts, h)
	}
	want := Want{Ranks: 1 + r.IntN(max(1, full*2/3)), GPUs: 1, Locality: append(job.Localities(), "")[r.IntN(5)]}
	if r.IntN(4) == 0 {
		want.GPUs = 2 + r.IntN(2)
		want.Ranks = 1 + (want.Ranks-1)/want.GPUs
	}
	return want, inventory, not
}

// randomHost is some GPUs of a named machine, or GPUs linked at random.
func randomHost(r *rand.Rand, name string, kind, words, most int) job.Host {
	links := [][]job.Link{
		{"NV1", "NV2", "SYS"}, {"PSB", "PIX", "PXB", "PHB", "NODE", "SYS", ""}, {"NODE", "SYS"},
	}[words]
	if kind < len(named) {
		h := named[kind].make(name)
		if from := r.IntN(2) * max(0, len(h.Devices)-most); len(h.Devices) > most {
			h.Devices = h.Devices[from : from+most]
			h.Links = h.Links[from : from+most]
			for i := range h.Links {
				h.Links[i] = h.Links[i][from : from+most]
			}
			for i := range h.NICs {
				h.NICs[i].Links = h.NICs[i].Links[from : from+most]
			}
		}
		return h
	}
	h := job.Host{Name: name, NICs: []job.NIC{{Name: "a"}, {Name: "b"}}}
	n := 1 + r.IntN(most)
	for i := range n {
		h.Devices = append(h.Devices, job.Device{UUID: fmt.Sprintf("%s-GPU%d", name, i), Index: i, CPUs: fmt.Sprint(i)})
		h.Links = append(h.Links, make([]job.Link, n))
		for j := range i {
			l := links[r.IntN(len(links))]
			h.Links[i][j], h.Links[j][i] = l, l
		}
		for k := range h.NICs {
			h.NICs[k].Links = append(h.NICs[k].Links, []job.Link{"PIX", "PXB", "PHB", "NODE", "SYS"}[r.IntN(5)])
		}
	}
	if r.IntN(10) == 0 {
		h.Links, h.NICs = nil, nil
	}
	return h
}

// rival sums up how what a gang leaves compares with what NVIDIA's policy leaves.
type rival struct {
	cases, rings          int // compared; with a better ring
	better, same, worse   int
	gain, loss            int // in Left, over better and worse
	equal, gained, costed int // of those with equal rings and links: all, with more left, with less
}

func (r *rival) String() string {
	return fmt.Sprintf("beside the best-effort policy, %d choices on one host: a better ring in %d; what is left is better in %d (by %.1f on average), the same in %d, worse in %d (by %.1f); of %d with equal rings and links it is better in %d, worse in %d",
		r.cases, r.rings, r.better, float64(r.gain)/float64(max(1, r.better)), r.same, r.worse, float64(r.loss)/float64(max(1, r.worse)), r.equal, r.gained, r.costed)
}

// hold compares a choice on the only host there is with NVIDIA's policy.
func (r *rival) hold(t *testing.T, want Want, inventory job.Inventory, not job.Excluded, c Choice) {
	t.Helper()
	if len(inventory.Hosts) != 1 || want.GPUs != 1 {
		return
	}
	h := inventory.Hosts[0]
	free := mayUse(h, not, false)
	theirs := scored(h, bestEffort(h, free, want.Ranks), free, want.Ranks)
	if len(theirs.gpus) != want.Ranks || c.Cost.Bottleneck < theirs.ring {
		t.Fatalf("a ring of %d, but the best-effort policy takes %v with %d", c.Cost.Bottleneck, theirs.gpus, theirs.ring)
	}
	r.cases++
	if c.Cost.Bottleneck > theirs.ring {
		r.rings++
	}
	alike := c.Cost.Bottleneck == theirs.ring && c.Cost.Links == theirs.links
	if alike {
		r.equal++
	}
	switch gain := c.Cost.Left - theirs.left; {
	case gain > 0:
		r.better++
		r.gain += gain
		if alike {
			r.gained++
		}
	case gain < 0:
		r.worse++
		r.loss -= gain
		if alike {
			r.costed++
		}
	default:
		r.same++
	}
}

func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2026))
	placed := 0
	var beside rival
	for n := range 400 {
		want, inventory, not := random(r)
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if c, ok := check(t, want, inventory, not); ok {
				placed++
				beside.hold(t, want, inventory, not, c)
			}
		})
	}
	t.Log(&beside)
	if placed < 200 || beside.cases < 50 || beside.better == 0 {
		t.Errorf("only %d of the cases can be placed; %v", placed, &beside)
	}
}
