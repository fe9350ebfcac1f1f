package probe

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestParseTopo compares machines of every generation with what is known about their hardware, for each pair of
// devices.
func TestParseTopo(t *testing.T) {
	all := func(link job.Link) func(a, b int) job.Link { return func(_, _ int) job.Link { return link } }
	halves := func(n int, first, second string) []string {
		return append(slices.Repeat([]string{first}, n), slices.Repeat([]string{second}, n)...)
	}
	dgx1 := map[[2]int]job.Link{
		{0, 1}: "NV1", {0, 2}: "NV1", {0, 3}: "NV2", {0, 4}: "NV2", {1, 2}: "NV2", {1, 3}: "NV1", {1, 5}: "NV2", {2, 3}: "NV2",
		{2, 6}: "NV1", {3, 7}: "NV1", {4, 5}: "NV1", {4, 6}: "NV1", {4, 7}: "NV2", {5, 6}: "NV2", {5, 7}: "NV1", {6, 7}: "NV2",
	}
	tests := []struct {
		file  string
		gpus  int
		link  func(a, b int) job.Link // a < b
		cpus  []string
		numa  []string
		nics  []string
		first []job.Link // links of the first GPU to the NICs
		last  []job.Link // links of the last GPU to the NICs
	}{
		{file: "dgx-1v.txt", gpus: 8,
			link: func(a, b int) job.Link {
				if l, ok := dgx1[[2]int{a, b}]; ok {
					return l
				}
				return job.LinkSYS
			},
			cpus: halves(4, "0-19,40-59", "20-39,60-79"), numa: make([]string, 8),
			nics:  []string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"},
			first: []job.Link{"PIX", "PHB", "SYS", "SYS"}, last: []job.Link{"SYS", "SYS", "PHB", "PIX"}},
		{file: "dgx-a100.txt", gpus: 8, link: all("NV12"),
			cpus:  []string{"48-63,176-191", "48-63,176-191", "16-31,144-159", "16-31,144-159", "112-127,240-255", "112-127,240-255", "80-95,208-223", "80-95,208-223"},
			numa:  []string{"3", "3", "1", "1", "7", "7", "5", "5"},
			nics:  []string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9"},
			first: []job.Link{"PXB", "PXB", "SYS", "SYS", "SYS", "SYS", "SYS", "SYS", "SYS", "SYS"},
			last:  []job.Link{"SYS", "SYS", "SYS", "SYS", "SYS", "SYS", "PXB", "PXB", "SYS", "SYS"}},
		{file: "hgx-h100.txt", gpus: 8, link: all("NV18"),
			cpus: halves(4, "0-55,112-167", "56-111,168-223"), numa: halves(4, "0", "1"),
			nics:  []string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_bond_0", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9"},
			first: []job.Link{"PIX", "NODE", "NODE", "NODE", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"},
			last:  []job.Link{"SYS", "SYS", "SYS", "SYS", "SYS", "SYS", "NODE", "NODE", "NODE", "PIX"}},
		{file: "rtx-4-pairs.txt", gpus: 4,
			link: func(a, b int) job.Link {
				if a/2 == b/2 {
					return "NV4"
				}
				return job.LinkSYS
			},
			cpus: halves(2, "0-15,32-47", "16-31,48-63"), numa: halves(2, "0", "1")},
		{file: "pcie-8-two-sockets.txt", gpus: 8,
			link: func(a, b int) job.Link {
				switch {
				case a/2 == b/2:
					return job.LinkPIX
				case a/4 == b/4:
					return job.LinkNODE
				}
				return job.LinkSYS
			},
			cpus: halves(4, "0-23,48-71", "24-47,72-95"), numa: halves(4, "0", "1"),
			nics: []string{"mlx5_0"}, first: []job.Link{"PXB"}, last: []job.Link{"SYS"}},
		{file: "k80-driver-367.txt", gpus: 8,
			link: func(a, b int) job.Link {
				switch {
				case a/2 == b/2:
					return job.LinkPIX
				case a/4 == b/4:
					return job.LinkPXB
				}
				return job.LinkSYS
			},
			cpus: halves(4, "0-9,20-29", "10-19,30-39"), numa: make([]string, 8),
			nics: []string{"mlx4_0"}, first: []job.Link{"PHB"}, last: []job.Link{"SYS"}},
		{file: "workstation-na.txt", gpus: 2, link: all("PHB"), cpus: []string{"0-11", "0-11"}, numa: []string{"", ""}},
		{file: "wsl.txt", gpus: 1, cpus: []string{""}, numa: []string{""}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			devices, links, nics, err := ParseTopo(read(t, test.file))
			if err != nil {
				t.Fatal(err)
			}
			if len(devices) != test.gpus || len(links) != test.gpus || len(nics) != len(test.nics) {
				t.Fatalf("%d devices, %d rows, %d NICs", len(devices), len(links), len(nics))
			}
			for a, d := range devices {
				if want := (job.Device{UUID: fmt.Sprintf("GPU%d", a), Index: a, CPUs: test.cpus[a], NUMA: test.numa[a]}); d != want {
					t.Errorf("device %+v, want %+v", d, want)
				}
				for b := range devices {
					want := job.Link("")
					if a != b {
						want = test.link(min(a, b), max(a, b))
					}
					if links[a][b] != want {
						t.Errorf("link of %d and %d: %q, want %q", a, b, links[a][b], want)
					}
				}
			}
			for i, nic := range nics {
				if nic.Name != test.nics[i] || nic.Links[0] != test.first[i] || nic.Links[test.gpus-1] != test.last[i] {
					t.Errorf("NIC %d: %+v, want %s, %s, %s", i, nic, test.nics[i], test.first[i], test.last[i])
				}
			}
		})
	}
}

func TestParseTopoSmall(t *testing.T) {
	tests := []struct {
		name, text string
		devices    []job.Device
		links      [][]job.Link
		nics       []job.NIC
	}{
		{"lost escapes, a prompt and a byte order mark", "\ufeff$ nvidia-smi topo -m\n\t[4mGPU0\tGPU1[0m\nGPU0\t X \tPSB\nGPU1\tPSB\t X \n",
			[]job.Device{{UUID: "GPU0"}, {UUID: "GPU1", Index: 1}}, [][]job.Link{{"", "PSB"}, {"PSB", ""}}, nil},
		{"gaps in the numbers", "GPU1 GPU3\nGPU1 X N/A\nGPU3 N/A X",
			[]job.Device{{UUID: "GPU1", Index: 1}, {UUID: "GPU3", Index: 3}}, [][]job.Link{{"", ""}, {"", ""}}, nil},
		{"one side is not known", "GPU0 GPU1\nGPU0 X N/A\nGPU1 SYS X",
			[]job.Device{{UUID: "GPU0"}, {UUID: "GPU1", Index: 1}}, [][]job.Link{{"", "SYS"}, {"SYS", ""}}, nil},
		{"rows of NICs are left out", "GPU0 NIC0 CPU Affinity\nGPU0 X NODE 0\nLegend:\nNIC Legend:\n NIC0: rocep1s0\n",
			[]job.Device{{UUID: "GPU0", CPUs: "0"}}, [][]job.Link{{""}}, []job.NIC{{Name: "rocep1s0", Links: []job.Link{"NODE"}}}},
		{"NUMA node of a NIC", "GPU0 mlx5_0 NUMA Affinity\nGPU0 X PIX 1\nmlx5_0 PIX X 1\n",
			[]job.Device{{UUID: "GPU0", NUMA: "1"}}, [][]job.Link{{""}}, []job.NIC{{Name: "mlx5_0", NUMA: "1", Links: []job.Link{"PIX"}}}},
		{"several NUMA nodes", "GPU0 CPU Affinity NUMA Affinity\nGPU0 X 0-63 0-1\n", []job.Device{{UUID: "GPU0", CPUs: "0-63", NUMA: "0"}}, [][]job.Link{{""}}, nil},
		{"NUMA nodes of GPUs", "GPU0 NIC0 CPU Affinity NUMA Affinity GPU NUMA ID\nGPU0 X NODE 72-143 1,10-17 10\nNIC0 NODE X 1,10-17\n",
			[]job.Device{{UUID: "GPU0", CPUs: "72-143", NUMA: "1"}}, [][]job.Link{{""}}, []job.NIC{{Name: "NIC0", Links: []job.Link{"NODE"}}}},
		{"the most NVLinks", "GPU0 GPU1\nGPU0 X NV255\nGPU1 NV255 X", []job.Device{{UUID: "GPU0"}, {UUID: "GPU1", Index: 1}}, [][]job.Link{{"", "NV255"}, {"NV255", ""}}, nil},
		{"an empty cell: a lone number may be either", "GPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t0\t\tN/A\n", []job.Device{{UUID: "GPU0"}}, [][]job.Link{{""}}, nil},
		{"an empty cell: a list is CPUs", "GPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-7\n", []job.Device{{UUID: "GPU0", CPUs: "0-7"}}, [][]job.Link{{""}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			devices, links, nics, err := ParseTopo(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(devices, test.devices) || !reflect.DeepEqual(links, test.links) || !reflect.DeepEqual(nics, test.nics) {
				t.Errorf("got %+v, %q, %+v", devices, links, nics)
			}
		})
	}
}

func TestParseTopoErrors(t *testing.T) {
	wide := ""
	for i := range maxColumns + 1 {
		wide += fmt.Sprintf("GPU%d ", i)
	}
	tests := []struct {
		name, text   string
		line, column int
		says         string
	}{
		{"empty", "", 1, 1, "no header"},
		{"another program", "h1 up 3 days\nh2 up\n", 2, 1, "no header"},
		{"without the header", "GPU0 X NV1\nGPU1 NV1 X\n", 1, 6, `"X" is no name of a column`},
		{"header cut off", "GPU0 GPU1 CPU Affinity NUMA\nGPU0 X PIX 0 0\n", 1, 24, `"NUMA"`},
		{"column twice", "GPU0 GPU0\n", 1, 6, `"GPU0" is there twice`},
		{"GPU behind a NIC", "GPU0 mlx5_0 GPU1\n", 1, 13, `"GPU1" follows a NIC`},
		{"unknown link", "    GPU0 GPU1\nGPU0 X   FOO\nGPU1 FOO X\n", 2, 10, `"FOO" is no link`},
		{"glued by a terminal", "GPU0 GPU1 GPU2\nGPU0 X NODENODE\n", 2, 8, `"NODENODE" is no link`},
		{"too many NVLinks", "GPU0 GPU1\nGPU0 X NV256\nGPU1 NV256 X\n", 2, 8, `"NV256" is no link: two devices are connected by at most 255 NVLinks`},
		{"far too many NVLinks", "GPU0 GPU1\nGPU0 X NV99999999999999999999\n", 2, 8, `"NV99999999999999999999" is no link: two devices are connected by at most 255`},
		{"NVLinks for a name", "GPU0 NV256\nGPU0 X PIX\n", 1, 6, `"NV256" is no name of a column`},
		{"no NVLink", "GPU0 GPU1\nGPU0 X NV0\nGPU1 NV0 X\n", 2, 8, `"NV0" is no link`},
		{"row too short", "GPU0 GPU1\nGPU0 X\n", 2, 7, `"GPU0" ends before column "GPU1": 1 of 2 cells`},
		{"row too long", "GPU0\nGPU0 X 0-3\n", 2, 8, `"0-3" is beyond the last column`},
		{"diagonal", "GPU0 GPU1\nGPU0 PIX PIX\nGPU1 PIX X\n", 2, 6, `"PIX" where X should be`},
		{"off the diagonal", "GPU0 GPU1\nGPU0 X X\nGPU1 PIX X\n", 2, 8, `"X" where how GPU0 and GPU1 are connected should be`},
		{"row missing", "GPU0 GPU1\nGPU0 X PIX\n\n", 2, 1, "the row of GPU1 is missing"},
		{"row twice", "GPU0 GPU1\nGPU0 X PIX\nGPU0 X PIX\n", 3, 1, `"GPU0" is there twice, in line 2 before`},
		{"row without column", "GPU0\nGPU1 X\n", 2, 1, `"GPU1" is no column of the header in line 1`},
		{"two sides differ", "GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n", 3, 6, `"SYS" here and by "PIX" in line 2`},
		{"CPU list", "GPU0 CPU Affinity\nGPU0 X 0-\n", 2, 8, `"0-" is no list`},
		{"CPU list backwards", "GPU0 CPU Affinity\nGPU0 X 4-0\n", 2, 8, `"4-0" is no list`},
		{"two hosts in one file", "GPU0\nGPU0 X\nLegend:\n X = Self\n\n GPU0\nGPU0 X\n", 6, 2, "second matrix"},
		{"too wide", wide, 1, strings.Index(wide, "GPU512") + 1, "more than 512 columns"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, _, err := ParseTopo(test.text)
			var at *TopoError
			if !errors.As(err, &at) {
				t.Fatalf("got %v, want a *TopoError", err)
			}
			if at.Line != test.line || at.Column != test.column || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want line %d, column %d and %q", err, test.line, test.column, test.says)
			}
		})
	}
}

func FuzzParseTopo(f *testing.F) {
	for _, name := range []string{"dgx-1v.txt", "dgx-a100.txt", "hgx-h100.txt", "rtx-4-pairs.txt", "pcie-8-two-sockets.txt", "k80-driver-367.txt", "workstation-na.txt", "wsl.txt"} {
		f.Add(read(f, name))
	}
	f.Add("GPU0 NIC0\nGPU0 X N/A\nNIC0 SYS X\nNIC Legend:\nNIC0: a")
	f.Fuzz(func(t *testing.T, text string) {
		devices, links, nics, err := ParseTopo(text)
		if err != nil {
			var at *TopoError
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 || at.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if len(devices) == 0 || len(links) != len(devices) {
			t.Fatalf("%d devices, %d rows of links", len(devices), len(links))
		}
		for a := range links {
			for b := range links[a] {
				if n, is := strings.CutPrefix(string(links[a][b]), "NV"); is && len(n) > 3 {
					t.Fatalf("links %q", links)
				}
				if len(links[a]) != len(devices) || links[a][b] != links[b][a] || a == b && links[a][b] != "" {
					t.Fatalf("links %q", links)
				}
			}
		}
		for _, nic := range nics {
			if nic.Name == "" || len(nic.Links) != len(devices) {
				t.Fatalf("NIC %+v", nic)
			}
		}
	})
}
