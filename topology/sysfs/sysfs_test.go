package sysfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gangrun/gangrun/internal/job"
)

// TestMachines compares named machines with what nvidia-smi topo -m shows of their PCI trees.
func TestMachines(t *testing.T) {
	pairs := func(a, b int) bool { return a/2 == b/2 }
	tests := []struct {
		name  string
		sys   sys
		gpus  []string
		link  func(a, b int) job.Link // a < b
		cpus  []string
		numa  []string
		nics  []string
		first []job.Link // links of the first GPU to the NICs
	}{
		{"DGX-1V", dgx1V(),
			[]string{"0000:06:00.0", "0000:07:00.0", "0000:0a:00.0", "0000:0b:00.0", "0000:86:00.0", "0000:87:00.0", "0000:8a:00.0", "0000:8b:00.0"},
			func(a, b int) job.Link {
				switch {
				case pairs(a, b):
					return job.LinkPIX
				case a/4 == b/4:
					return job.LinkPHB
				}
				return job.LinkSYS
			},
			append(slices.Repeat([]string{"0-19,40-59"}, 4), slices.Repeat([]string{"20-39,60-79"}, 4)...),
			[]string{"0", "0", "0", "0", "1", "1", "1", "1"},
			[]string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}, []job.Link{"PIX", "PHB", "SYS", "SYS"}},
		{"DGX A100", dgxA100(),
			[]string{"0000:07:00.0", "0000:08:00.0", "0000:47:00.0", "0000:48:00.0", "0000:87:00.0", "0000:88:00.0", "0000:c7:00.0", "0000:c8:00.0"},
			func(a, b int) job.Link {
				if pairs(a, b) {
					return job.LinkPIX
				}
				return job.LinkSYS
			},
			[]string{"48-63,176-191", "48-63,176-191", "16-31,144-159", "16-31,144-159", "112-127,240-255", "112-127,240-255", "80-95,208-223", "80-95,208-223"},
			[]string{"3", "3", "1", "1", "7", "7", "5", "5"},
			[]string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9"},
			[]job.Link{"PXB", "PXB", "SYS", "SYS", "SYS", "SYS", "SYS", "SYS", "SYS", "SYS"}},
		{"8x PCIe, two sockets", pcie8(),
			[]string{"0000:1b:00.0", "0000:1c:00.0", "0000:4b:00.0", "0000:4c:00.0", "0000:7b:00.0", "0000:7c:00.0", "0000:ab:00.0", "0000:ac:00.0"},
			func(a, b int) job.Link {
				switch {
				case pairs(a, b):
					return job.LinkPIX
				case a/4 == b/4:
					return job.LinkNODE
				}
				return job.LinkSYS
			},
			append(slices.Repeat([]string{"0-23,48-71"}, 4), slices.Repeat([]string{"24-47,72-95"}, 4)...),
			[]string{"0", "0", "0", "0", "1", "1", "1", "1"}, nil, nil},
		{"workstation", workstation(), []string{"0000:01:00.0", "0000:02:00.0"},
			func(_, _ int) job.Link { return job.LinkPHB }, []string{"0-11", "0-11"}, []string{"0", "0"}, nil, nil},
		{"cloud", cloud(), []string{"0001:00:00.0", "0002:00:00.0", "10003:00:00.0"},
			func(a, b int) job.Link {
				if b == 1 {
					return job.LinkNODE
				}
				return job.LinkSYS
			}, []string{"0-19", "0-19", "0-39"}, []string{"0", "0", ""}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := Read(test.sys)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.GPUs(); !slices.Equal(got, test.gpus) {
				t.Fatalf("GPUs %q, want %q", got, test.gpus)
			}
			var h job.Host
			for _, id := range m.GPUs() {
				h.Devices = append(h.Devices, job.Device{PCI: id})
			}
			m.Fill(&h)
			for a, d := range h.Devices {
				if d.CPUs != test.cpus[a] || d.NUMA != test.numa[a] {
					t.Errorf("GPU %d: CPUs %q of node %q, want %q of %q", a, d.CPUs, d.NUMA, test.cpus[a], test.numa[a])
				}
				for b := range h.Devices {
					want := job.Link("")
					if a != b {
						want = test.link(min(a, b), max(a, b))
					}
					if h.Links[a][b] != want {
						t.Errorf("link of %d and %d: %q, want %q", a, b, h.Links[a][b], want)
					}
				}
			}
			var nics []string
			for i, nic := range h.NICs {
				nics = append(nics, nic.Name)
				if nic.Links[0] != test.first[i] || nic.PCI == "" || nic.NUMA == "" {
					t.Errorf("NIC %+v, want %s to the first GPU", nic, test.first[i])
				}
			}
			if !slices.Equal(nics, test.nics) {
				t.Errorf("NICs %q, want %q", nics, test.nics)
			}
		})
	}
}

func TestRead(t *testing.T) {
	m, err := Read(dgxA100())
	if err != nil {
		t.Fatal(err)
	}
	if m.CPUs != "0-255" || len(m.Nodes) != 8 {
		t.Fatalf("CPUs %q, %d nodes", m.CPUs, len(m.Nodes))
	}
	if want := (Node{ID: 1, CPUs: "16-31,144-159", Memory: 1 << 30, Distances: []int{12, 10, 12, 12, 12, 12, 12, 12}}); !reflect.DeepEqual(m.Nodes[1], want) {
		t.Errorf("node %+v, want %+v", m.Nodes[1], want)
	}
	want := NIC{Name: "mlx5_9", PCI: "0000:e1:00.1", NUMA: "4", CPUs: "64-79,192-207", Nets: []string{"enp225s0f1"},
		Ports: []Port{{Number: 1, Layer: "Ethernet", State: "ACTIVE", Rate: "200 Gb/sec (4X HDR)"}}}
	if !reflect.DeepEqual(m.NICs[9], want) {
		t.Errorf("NIC %+v, want %+v", m.NICs[9], want)
	}
	if got := m.Link("0000:e1:00.0", "0000:e1:00.1"); got != job.LinkPIX {
		t.Errorf("two ports of a card: %q", got)
	}
	if got := m.Link("0000:e1:00.0", "0000:e1:00.0"); got != "" {
		t.Errorf("a device and itself: %q", got)
	}
	if got := m.Link("0000:e1:00.0", "0000:99:00.0"); got != "" {
		t.Errorf("a device that is not there: %q", got)
	}
}

// TestFillKeeps checks that Fill keeps what the driver has reported.
func TestFillKeeps(t *testing.T) {
	s := dgx1V()
	s.file("devices/pci0000:80/0000:80:03.0/0000:88:00.0/0000:89:10.0/0000:a8:00.0/infiniband/mlx5_3/ports/1/state", "1: DOWN")
	s.link("class/infiniband/rxe0", "devices/virtual/infiniband/rxe0")
	s.file("devices/virtual/infiniband/rxe0/ports/1/state", "4: ACTIVE")
	m, err := Read(s)
	if err != nil {
		t.Fatal(err)
	}
	h := job.Host{
		Devices: []job.Device{
			{PCI: "0000:06:00.0", CPUs: "0-3", NUMA: "7"}, {PCI: "0000:07:00.0"},
			{UUID: "MIG-1", GPU: "GPU-a", PCI: "0000:0a:00.0"}, {UUID: "MIG-2", GPU: "GPU-a", PCI: "0000:0a:00.0"}, {UUID: "lost"},
		},
		Links: [][]job.Link{{"", "NV2", "", "", ""}, {"NV2", "", "", "", ""}, {"", "", "", "", ""}, {"", "", "", "", ""}, {"", "", "", "", ""}},
		NICs: []job.NIC{
			{Name: "mlx5_0", Links: []job.Link{"PXB", "", "", "", ""}}, {Name: "hfi1_0", NUMA: "1"}, {Name: "mlx5_3", Links: []job.Link{"SYS", "SYS", "SYS", "SYS", "SYS"}},
		},
	}
	m.Fill(&h)
	if d := h.Devices[0]; d.CPUs != "0-3" || d.NUMA != "7" {
		t.Errorf("device %+v", d)
	}
	links := [][]job.Link{
		{"", "NV2", "PHB", "PHB", ""}, {"NV2", "", "PHB", "PHB", ""}, {"PHB", "PHB", "", "PSB", ""}, {"PHB", "PHB", "PSB", "", ""}, {"", "", "", "", ""},
	}
	if !reflect.DeepEqual(h.Links, links) {
		t.Errorf("links %q, want %q", h.Links, links)
	}
	nics := []job.NIC{
		{Name: "hfi1_0", NUMA: "1"},
		{Name: "mlx5_0", PCI: "0000:24:00.0", NUMA: "0", Links: []job.Link{"PXB", "PIX", "PHB", "PHB", ""}},
		{Name: "mlx5_1", PCI: "0000:28:00.0", NUMA: "0", Links: []job.Link{"PHB", "PHB", "PIX", "PIX", ""}},
		{Name: "mlx5_2", PCI: "0000:a4:00.0", NUMA: "1", Links: []job.Link{"SYS", "SYS", "SYS", "SYS", ""}},
		{Name: "rxe0", Links: []job.Link{"", "", "", "", ""}},
	}
	if !reflect.DeepEqual(h.NICs, nics) {
		t.Errorf("NICs %+v, want %+v", h.NICs, nics)
	}
}

func TestUp(t *testing.T) {
	for _, test := range []struct {
		states []string
		up     bool
	}{
		{nil, true}, {[]string{"ACTIVE"}, true}, {[]string{"DOWN"}, false}, {[]string{"INIT", "ARMED"}, false}, {[]string{"DOWN", "ACTIVE"}, true}, {[]string{""}, true},
	} {
		var n NIC
		for _, s := range test.states {
			n.Ports = append(n.Ports, Port{State: s})
		}
		if n.Up() != test.up {
			t.Errorf("%q: up is %v", test.states, n.Up())
		}
	}
}

func TestReadSparse(t *testing.T) {
	m, err := Read(fstest.MapFS{})
	if err != nil || m.CPUs != "" || m.Nodes != nil || m.NICs != nil || m.GPUs() != nil {
		t.Errorf("an empty /sys: %+v, %v", m, err)
	}
	h := job.Host{Devices: []job.Device{{UUID: "GPU-a", PCI: "0000:01:00.0"}}}
	m.Fill(&h)
	if !reflect.DeepEqual(h, job.Host{Devices: []job.Device{{UUID: "GPU-a", PCI: "0000:01:00.0"}}}) {
		t.Errorf("made up %+v", h)
	}

	s := newSys()
	s.file("devices/system/node/node0/cpulist", "0-3")
	s.file("devices/system/node/node0/distance", "ten")
	s.file("devices/system/node/node0/meminfo", "MemTotal: lots")
	s.file("devices/system/node/nodeX/cpulist", "4-7")
	s.link("bus/pci/devices/0000:00:01.0", "devices/platform/thing")
	s.file("bus/pci/devices/0000:00:02.0", "no link")
	m, err = Read(s)
	if !reflect.DeepEqual(m.Nodes, []Node{{CPUs: "0-3"}}) || len(m.pci) != 0 {
		t.Errorf("got %+v", m)
	}
	if err == nil || !strings.Contains(err.Error(), "node0/distance") || !strings.Contains(err.Error(), "0000:00:02.0") {
		t.Errorf("error %v", err)
	}
}

func TestReadDenied(t *testing.T) {
	m, err := Read(denied{workstation(), "devices/system/node/node0/meminfo"})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v", err)
	}
	if len(m.GPUs()) != 2 || len(m.Nodes) != 1 || m.Nodes[0].Memory != 0 {
		t.Errorf("the rest is missing: %+v", m)
	}
}

// denied is a /sys with a file that may not be read.
type denied struct {
	sys
	name string
}

func (d denied) Open(name string) (fs.File, error) {
	if name == d.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.sys.Open(name)
}

func (d denied) ReadFile(name string) ([]byte, error) {
	if name == d.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.sys.ReadFile(name)
}

// TestDirFS checks that a tree of real symbolic links gives the same result as one in memory.
func TestDirFS(t *testing.T) {
	dir := t.TempDir()
	s := dgx1V()
	for name, f := range s.MapFS {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.Mode&fs.ModeSymlink != 0 {
			err = os.Symlink(string(f.Data), at)
		} else {
			err = os.WriteFile(at, f.Data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := Read(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNatural(t *testing.T) {
	names := []string{"mlx5_10", "bnxt_re1", "mlx5_2", "mlx5_bond_0", "mlx5_02", "mlx5_1", "a", "mlx5_1x"}
	slices.SortFunc(names, natural)
	if want := []string{"a", "bnxt_re1", "mlx5_1", "mlx5_02", "mlx5_2", "mlx5_10", "mlx5_1x", "mlx5_bond_0"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// FuzzLink checks that links are symmetric for all paths of the devices.
func FuzzLink(f *testing.F) {
	f.Add("devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0", "devices/pci0000:3a/0000:3a:00.0/0000:3c:00.0", 0, 0)
	f.Add("devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0", "devices/pci0000:00/0000:00:0e.0", 1, -1)
	f.Add("pci0000:00/x", "", 0, 1)
	f.Fuzz(func(t *testing.T, a, b string, numaA, numaB int) {
		m := Machine{pci: map[string]device{}}
		for _, d := range []struct {
			at   string
			numa int
		}{{a, numaA}, {b, numaB}} {
			if root, way, ok := split(d.at); ok {
				m.pci[way[len(way)-1]] = device{root: root, way: way, numa: d.numa}
			}
		}
		for x := range m.pci {
			for y := range m.pci {
				if link := m.Link(x, y); link != m.Link(y, x) || (link == "") != (x == y) {
					t.Fatalf("%s and %s: %q and %q", x, y, link, m.Link(y, x))
				}
			}
		}
	})
}
