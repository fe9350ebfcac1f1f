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

// check compares a choice, or the error, with the brute force.
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

// verify computes the scores of a placement, and compares them with what the Choice says.
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

// tell returns the cost that the words for a choice describe.
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
			told.Left = c.Cost.Left // on a host with many GPUs, Left is only an estimate
		}
	}
	return told
}

// given returns the indices of the GPUs of a choice in the order of the ranks.
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
