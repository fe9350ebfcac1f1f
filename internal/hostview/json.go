// Package hostview prints hosts with their GPUs and the links between them, and plans of where a gang would
// run: as text, as JSON, as SVG and in the DOT language.
package hostview

import (
	"io"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/machine"
)

// topoReport is what "gangrun topo" prints as JSON.
type topoReport struct {
	Hosts    []topoHost    `json:"hosts"`
	Machine  *topoMachine  `json:"machine"` // this machine; null if gangrun has not looked at it
	Findings []job.Finding `json:"findings"`
}

// topoHost is a host with its islands.
type topoHost struct {
	job.Host
	Islands [][]string `json:"islands"` // the UUIDs of the GPUs of each island
}

// topoMachine has what is known of this machine besides its GPUs.
type topoMachine struct {
	CPUs   string     `json:"cpus"`
	NUMA   []topoNode `json:"numa"`
	NICs   []topoNIC  `json:"nics"`
	Driver string     `json:"driver"` // empty if there is none
	CUDA   string     `json:"cuda"`   // the newest CUDA that the driver supports
	Source string     `json:"source"` // the program that reported the GPUs
}

// topoNode is a NUMA node.
type topoNode struct {
	ID        int    `json:"id"`
	CPUs      string `json:"cpus"`
	Memory    int64  `json:"memory"` // bytes; 0 if not known
	Distances []int  `json:"distances"`
}

// topoNIC is a NIC of this machine.
type topoNIC struct {
	Name string   `json:"name"`
	PCI  string   `json:"pci"`
	NUMA string   `json:"numa"`
	Nets []string `json:"nets"`
	Up   bool     `json:"up"`
	Rate string   `json:"rate"` // the rate of its first port
}

// JSON prints the hosts of l as JSON.
func JSON(w io.Writer, l hostlist.List) error {
	r := topoReport{Hosts: []topoHost{}, Findings: []job.Finding{}}
	for _, h := range l.Hosts {
		t := topoHost{Host: h, Islands: [][]string{}}
		for _, island := range topology.Islands(h) {
			var uuids []string
			for _, i := range island {
				uuids = append(uuids, h.Devices[i].UUID)
			}
			t.Islands = append(t.Islands, uuids)
		}
		r.Hosts = append(r.Hosts, t)
	}
	if l.Own != nil {
		r.Machine = reportOf(l.Own)
		r.Findings = append(r.Findings, l.Own.Findings...)
	}
	return view.JSON(w, r)
}

// reportOf returns what "gangrun topo" reports about this machine.
func reportOf(m *machine.Machine) *topoMachine {
	t := &topoMachine{CPUs: m.Kernel.CPUs, NUMA: []topoNode{}, NICs: []topoNIC{}, Driver: m.Driver.Driver, CUDA: m.Driver.CUDA, Source: m.Driver.Source}
	for _, n := range m.Kernel.Nodes {
		t.NUMA = append(t.NUMA, topoNode{n.ID, n.CPUs, n.Memory, n.Distances})
	}
	for _, n := range m.Kernel.NICs {
		nic := topoNIC{Name: n.Name, PCI: n.PCI, NUMA: n.NUMA, Nets: n.Nets, Up: n.Up()}
		if len(n.Ports) > 0 {
			nic.Rate = n.Ports[0].Rate
		}
		t.NICs = append(t.NICs, nic)
	}
	return t
}
