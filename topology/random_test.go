package topology

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// random returns a case that the brute force can handle: one host of up to 8 GPUs, or 2 to 4 hosts of up to 4
// GPUs with racks and switches.
func random(r *rand.Rand) (Want, job.Inventory, job.Excluded) {
	hosts, most := 1, 8
	if r.IntN(2) == 0 {
		hosts, most = 2+r.IntN(3), 4
	}
	var inventory job.Inventory
	var not job.Excluded
	full := 0
	same := r.IntN(2) == 0
	names := []string{"", "GPU-"}[r.IntN(2)] // GPUs have UUIDs, or names that are the same on all hosts
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
		for d := range h.Devices {
			rename(&h.Devices[d].UUID, h.Name, names)
			rename(&h.Devices[d].GPU, h.Name, names)
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
				id := h.Devices[d].UUID
				if names == "" {
					id = h.Name + "/" + id
				}
				not.Devices = append(not.Devices, id)
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

// rename puts prefix before a UUID. If prefix is "", it removes the name of the host from the UUID.
func rename(uuid *string, host, prefix string) {
	if *uuid == "" {
		return
	}
	if prefix == "" {
		*uuid = strings.TrimPrefix(*uuid, host+"-")
	} else {
		*uuid = prefix + *uuid
	}
}

// randomHost returns some GPUs of a named machine, or GPUs with random links.
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

// rival sums up how what a gang leaves free compares with NVIDIA's policy.
type rival struct {
	cases, rings          int // number of cases, and of those with a better ring
	better, same, worse   int
	gain, loss            int // in Left, summed over better and worse cases
	equal, gained, costed int // cases with equal rings and links: all, with more left, with less left
}

func (r *rival) String() string {
	return fmt.Sprintf("beside the best-effort policy, %d choices on one host: a better ring in %d; what is left is better in %d (by %.1f on average), the same in %d, worse in %d (by %.1f); of %d with equal rings and links it is better in %d, worse in %d",
		r.cases, r.rings, r.better, float64(r.gain)/float64(max(1, r.better)), r.same, r.worse, float64(r.loss)/float64(max(1, r.worse)), r.equal, r.gained, r.costed)
}

// hold compares a choice on the only host with NVIDIA's policy.
func (r *rival) hold(t *testing.T, want Want, inventory job.Inventory, not job.Excluded, c Choice) {
	t.Helper()
	if len(inventory.Hosts) != 1 || want.GPUs != 1 {
		return
	}
	h := inventory.Hosts[0]
	free := mayUse(h, want.GPUs, not, false)
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
