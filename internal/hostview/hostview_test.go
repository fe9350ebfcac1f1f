package hostview

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/plan"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/probe"
)

func TestTopoIslands(t *testing.T) {
	mig := pairsOf("mig", 4)
	mig.Devices[1].GPU, mig.Devices[2].GPU = "GPU0", "GPU0" // MIG instances of the first GPU
	weak := pairsOf("weak", 2)
	weak.Links[0][1], weak.Links[1][0] = job.LinkNODE, job.LinkNODE
	blind := pairsOf("blind", 3)
	blind.Links = nil
	for _, c := range []struct {
		host job.Host
		want string
		text string
	}{
		{pairsOf("pairs", 4), "[[0 1] [2 3]]", "2 islands of 2 (NV4), SYS between"},
		{pairsOf("odd", 3), "[[0 1] [2]]", "2 islands of 2 and 1 (NV4), SYS between"},
		{weak, "[[0 1]]", "1 island of 2 (NODE)"},
		{blind, "[[0 1 2]]", "links not known"},
		{mig, "[[1] [2 3]]", "2 islands of 1 and 2 (NV4), SYS between"},
		{job.Host{}, "[]", ""},
	} {
		t.Run(c.host.Name, func(t *testing.T) {
			if got := fmt.Sprint(topology.Islands(c.host)); got != c.want {
				t.Errorf("islands %s, want %s", got, c.want)
			}
			if got := islandText(c.host); got != c.text {
				t.Errorf("%q, want %q", got, c.text)
			}
		})
	}
}

func TestTopoStates(t *testing.T) {
	h := pairsOf("h", 4)
	h.Devices[0].Sick = "it needs a reset"
	h.Devices[1].GPU = "GPU0"
	h.Devices[2].Busy = "used by pid 7"
	states, words := gpuStates(h)
	if want := []topology.DeviceState{topology.DeviceCut, topology.DeviceSick, topology.DeviceBusy, topology.DeviceFree}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if want := []string{"cut into MIG instances", "sick: it needs a reset", "busy: used by pid 7", "free"}; !slices.Equal(words, want) {
		t.Errorf("words %q, want %q", words, want)
	}
	if got, want := gpuCount(h), "3 GPUs, 1 free, 1 busy, 1 sick"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := topology.Labels(h), []string{"GPU0", "GPU1:0", "GPU2", "GPU3"}; !slices.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
}

func TestTopoIslandName(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA"} {
		if got := islandName(i); got != want {
			t.Errorf("island %d is %s, want %s", i, got, want)
		}
	}
}

// bare returns the /sys of a machine that has two NUMA nodes, a NIC that is down, and no GPU.
func bare() fs.FS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"devices/system/cpu/online":                  file("0-7\n"),
		"devices/system/node/node0/cpulist":          file("0-3\n"),
		"devices/system/node/node0/distance":         file("10 21\n"),
		"devices/system/node/node1/cpulist":          file("4-7\n"),
		"devices/system/node/node1/distance":         file("21 10\n"),
		"class/infiniband/mlx5_0/ports/1/state":      file("1: DOWN\n"),
		"class/infiniband/mlx5_0/ports/1/rate":       file("100 Gb/sec (4X EDR)\n"),
		"class/infiniband/mlx5_0/ports/1/link_layer": file("InfiniBand\n"),
		"devices/system/node/node0/meminfo":          file("Node 0 MemTotal: 2097152 kB\n"),
	}
}

// TestTopoBareMachine checks the output for a machine without GPUs and without a driver. It says where gangrun has
// looked for GPUs, what the user can do, and what else the machine has.
func TestTopoBareMachine(t *testing.T) {
	h := job.Host{Name: "node1"}
	own, err := hostlist.LookAt(context.Background(), &h, bare(), probe.Options{NVML: filepath.Join(t.TempDir(), "none"), Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l := hostlist.List{List: inventory.List{Hosts: []job.Host{h}}, Own: &own}
	var b strings.Builder
	if err := Text(&b, l); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"host node1: no GPUs known", "GPUs    none found; asked: gangrun-nvml", "nvidia-smi", "CPUs    0-7 online",
		"NUMA 0  CPUs 0-3, 2.0 GiB, distances 10 21", "NUMA 1  CPUs 4-7", "NIC     mlx5_0: down, 100 Gb/sec (4X EDR)", "gangrun topo --inventory FILE",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := JSON(&b, l); err != nil {
		t.Fatal(err)
	}
	var r topoReport
	if err := json.Unmarshal([]byte(b.String()), &r); err != nil {
		t.Fatal(err)
	}
	if r.Machine == nil || r.Machine.CPUs != "0-7" || len(r.Machine.NUMA) != 2 || len(r.Machine.NICs) != 1 || r.Machine.NICs[0].Up || len(r.Findings) == 0 {
		t.Errorf("the report is %s", b.String())
	}
	if g := (plan.Gang{Ranks: 2, GPUs: -1}); g.OnGPUs(l.Hosts) != 0 || h.Slots < 1 {
		t.Errorf("a gang has %d GPUs a rank on a machine of %d slots", g.OnGPUs(l.Hosts), h.Slots)
	}
}

// TestTopoDriver checks that the output has what the driver reports about this machine. If the driver hangs, the
// output has a finding.
func TestTopoDriver(t *testing.T) {
	dir := t.TempDir()
	query, err := filepath.Abs("../../topology/probe/testdata/query-551-wsl.xml")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		limit  time.Duration
		script string
		want   []string
	}{
		"answers": {time.Minute, "case \"$*\" in '-q -x') exec cat '" + query + "';; *) exit 1;; esac", []string{"driver  551.", "told by nvidia-smi", "GPU0"}},
		"hangs":   {50 * time.Millisecond, "exec sleep 600", []string{"GPUs    none found", "had not ended after"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, "nvidia-smi"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			h := job.Host{Name: "node1"}
			own, err := hostlist.LookAt(context.Background(), &h, bare(), probe.Options{NVML: filepath.Join(dir, "none"), Path: path, Limit: c.limit})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := Text(&b, hostlist.List{List: inventory.List{Hosts: []job.Host{h}}, Own: &own}); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %q in\n%s", want, b.String())
				}
			}
		})
	}
}

// awkward returns a host whose names would break XML and the DOT language if they were not escaped.
func awkward() job.Host {
	h := pairsOf(`h<1>&"\`, 4)
	h.Rack, h.Switch = `r"</svg>`, "s]]>\x00"
	h.Devices[1].Busy = "used by <b>&\x1b[2J \"x\"\\"
	h.Devices[2].Sick = "--> broken"
	h.NICs = []job.NIC{{Name: `mlx"<5>`, Links: []job.Link{job.LinkPIX, job.LinkPIX, job.LinkSYS, job.LinkSYS}}, {Name: "far"}}
	return h
}

func awkwardLists() map[string]hostlist.List {
	other := pairsOf("plain", 2)
	return map[string]hostlist.List{
		"one":  {List: inventory.List{Hosts: []job.Host{awkward()}}},
		"two":  {List: inventory.List{Hosts: []job.Host{awkward(), other}}},
		"none": {List: inventory.List{Hosts: []job.Host{{Name: "h1"}}}},
	}
}

// TestTopoPrintsNoControls checks that no control character in the data of a driver or a file reaches the terminal.
func TestTopoPrintsNoControls(t *testing.T) {
	for name, l := range awkwardLists() {
		var b strings.Builder
		if err := Text(&b, l); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
			t.Errorf("%s: a control character at %d of %q", name, i, b.String())
		}
	}
}
