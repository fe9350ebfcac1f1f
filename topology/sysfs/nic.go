package sysfs

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// NIC is a network device for InfiniBand or RoCE.
type NIC struct {
	Name  string   // as in mlx5_0
	PCI   string   // PCI bus ID; empty for a NIC in software (rxe, siw)
	NUMA  string   // number of its NUMA node; empty if unknown
	CPUs  string   // the CPUs close to it, as in 0-15
	Nets  []string // its network interfaces, as in eth2 or ib0
	Ports []Port   // in the order of their numbers
}

// Port is one port of a NIC.
type Port struct {
	Number int
	Layer  string // InfiniBand, or Ethernet for RoCE
	State  string // as in ACTIVE, INIT or DOWN
	Rate   string // as in "200 Gb/sec (4X HDR)"
}

// Up reports whether data can be sent, because at least one port is active. It returns true if
// the ports are not known.
func (n NIC) Up() bool {
	return len(n.Ports) == 0 || slices.ContainsFunc(n.Ports, func(p Port) bool { return p.State == "ACTIVE" || p.State == "" })
}

func (r *reader) nic(name string) NIC {
	n := NIC{Name: name}
	at := r.link("class/infiniband/" + name)
	if at == "" {
		at = "class/infiniband/" + name // it is a directory in old kernels
	}
	if root, way, ok := split(at); ok {
		n.PCI = way[len(way)-1]
		above := path.Join(root, path.Join(way...))
		n.CPUs = r.text(above + "/local_cpulist")
		n.Nets = r.list(above + "/net")
	}
	for _, port := range r.list(path.Join(at, "ports")) {
		number, err := strconv.Atoi(port)
		if err != nil {
			continue
		}
		dir := path.Join(at, "ports", port)
		_, state, _ := strings.Cut(r.text(dir+"/state"), ": ") // as in "4: ACTIVE"
		n.Ports = append(n.Ports, Port{Number: number, Layer: r.text(dir + "/link_layer"), State: state, Rate: r.text(dir + "/rate")})
	}
	slices.SortFunc(n.Ports, func(a, b Port) int { return a.Number - b.Number })
	return n
}

// number returns the number in a text, or -1.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

func text(n int) string { return strconv.Itoa(n) }

// natural compares names so that mlx5_2 is before mlx5_10.
func natural(a, b string) int {
	x, y := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	if x != y {
		return strings.Compare(x, y)
	}
	m, n := strings.TrimLeft(a[len(x):], "0"), strings.TrimLeft(b[len(y):], "0")
	return cmp.Or(len(m)-len(n), strings.Compare(m, n), strings.Compare(a, b))
}
