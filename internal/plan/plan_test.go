package plan

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/machine"
)

// pairsOf returns a host with that many GPUs, which NVLinks join in pairs.
func pairsOf(name string, gpus int) job.Host {
	h := job.Host{Name: name, Address: name}
	for i := range gpus {
		h.Devices = append(h.Devices, job.Device{UUID: "GPU" + string(rune('0'+i)), Index: i})
		row := make([]job.Link, gpus)
		for j := range row {
			switch {
			case i == j:
			case i/2 == j/2:
				row[j] = "NV4"
			default:
				row[j] = job.LinkSYS
			}
		}
		h.Links = append(h.Links, row)
	}
	return h
}

func TestPlanSlots(t *testing.T) {
	host := func(name, rack string, slots int, hard bool) job.Host {
		return job.Host{Name: name, Rack: rack, Slots: slots, Hard: hard}
	}
	for _, c := range []struct {
		name  string
		ranks int
		hosts []job.Host
		on    string // host of each rank
		level job.Locality
		cost  topology.Cost
	}{
		{"a host without slots has one", 2, []job.Host{host("h1", "", 0, false), host("h2", "", 0, false)},
			"h1 h2", job.LocalityRack, topology.Cost{Racks: 1, Switches: 1, Hosts: 2, Bottleneck: topology.NoRing}},
		{"and takes more where there is no room", 3, []job.Host{host("h1", "", 0, false), host("h2", "", 1, true)},
			"h1 h1 h2", job.LocalityRack, topology.Cost{Racks: 1, Switches: 1, Hosts: 2, Bottleneck: topology.NoRing}},
		{"one host", 2, []job.Host{host("h1", "r1", 2, true)},
			"h1 h1", job.LocalityHost, topology.Cost{Racks: 1, Switches: 1, Hosts: 1, Bottleneck: topology.NoRing}},
		{"two racks", 2, []job.Host{host("h1", "r1", 1, true), host("h2", "r2", 1, true)},
			"h1 h2", job.LocalityAny, topology.Cost{Racks: 2, Switches: 2, Hosts: 2, Bottleneck: topology.NoRing}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Gang{Ranks: c.ranks, GPUs: 0}.Place(c.hosts)
			if err != nil {
				t.Fatal(err)
			}
			var on []string
			for _, r := range got.Placement.Ranks {
				on = append(on, r.Host)
			}
			if strings.Join(on, " ") != c.on || got.Level != c.level || got.Cost != c.cost {
				t.Errorf("got %q, %s, %+v; want %q, %s, %+v", on, got.Level, got.Cost, c.on, c.level, c.cost)
			}
			if c.hosts[0].Slots == 0 && got.Placement.Hosts[0].Slots != 1 {
				t.Errorf("host %+v is placed with its slots, want 1", got.Placement.Hosts[0])
			}
		})
	}
}

func TestPlanOnGPUs(t *testing.T) {
	with, without := []job.Host{{Name: "h1"}, pairsOf("h2", 2)}, []job.Host{{Name: "h1"}}
	for _, c := range []struct {
		gpus  int
		hosts []job.Host
		want  int
	}{
		{-1, with, 1}, {-1, without, 0}, {0, with, 0}, {2, with, 2}, {2, without, 2},
	} {
		if got := (Gang{Ranks: 1, GPUs: c.gpus}).OnGPUs(c.hosts); got != c.want {
			t.Errorf("gpus-per-rank %d on %d hosts: %d GPUs a rank, want %d", c.gpus, len(c.hosts), got, c.want)
		}
	}
}

func TestPlanMissing(t *testing.T) {
	list := func(kind inventory.Kind, hosts ...job.Host) hostlist.List {
		return hostlist.List{List: inventory.List{Kind: kind, Hosts: hosts}}
	}
	bare := job.Host{Name: "h1"}
	for _, c := range []struct {
		name string
		gang Gang
		list hostlist.List
		want []string // a part of each note
	}{
		{"GPUs of hosts by name are not known", Gang{GPUs: -1}, list(inventory.Flag, bare), []string{"what GPUs h1 has cannot be seen", "slots of h1 are not stated: it counts as one slot"}},
		{"unless none are wanted", Gang{GPUs: 0}, list(inventory.Flag, bare, job.Host{Name: "h2"}), []string{"slots of h1, h2 are not stated: each counts"}},
		{"an inventory may leave them out", Gang{GPUs: -1}, list(inventory.Inventory, bare, pairsOf("h2", 2)), []string{"the list tells of no GPUs of h1: not used"}},
		{"stated slots need no note", Gang{GPUs: 0}, list(inventory.Flag, job.Host{Name: "h1", Slots: 2, Hard: true}), nil},
		{"this machine knows itself", Gang{GPUs: -1}, hostlist.List{List: inventory.List{Hosts: []job.Host{bare}}, Own: &machine.Machine{}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.gang.Missing(c.list)
			if len(got) != len(c.want) {
				t.Fatalf("notes %q, want %d", got, len(c.want))
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) {
					t.Errorf("note %q, want one with %q", got[i], c.want[i])
				}
			}
		})
	}
}
