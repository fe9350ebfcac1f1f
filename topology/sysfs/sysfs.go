// Package sysfs reads the hardware of a host from /sys: NUMA nodes and their CPUs, the tree of
// PCI devices, and the NICs for InfiniBand or RoCE. It needs no GPU driver and no other
// program.
package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Machine is the hardware of one host. A field is empty if the kernel does not show that
// hardware, for instance inside a container.
type Machine struct {
	CPUs  string // the CPUs that are online, as in 0-63
	Nodes []Node // NUMA nodes, by number
	NICs  []NIC  // InfiniBand and RoCE, by name
	pci   map[string]device
}

// Node is a NUMA node.
type Node struct {
	ID     int
	CPUs   string // its CPUs, as in 0-15; empty for a node that has only memory
	Memory int64  // bytes; 0 means unknown
	// Distances has the distances to all nodes, in the order of Machine.Nodes. The distances are those of
	// ACPI's SLIT table, in which the distance of a node to itself is 10.
	Distances []int
}

// Read reads the Machine from fsys, whose root is /sys. It ignores missing files. If an
// existing file cannot be read, Read returns an error together with the rest of the Machine.
func Read(fsys fs.FS) (Machine, error) {
	r := reader{fsys: fsys}
	m := Machine{CPUs: r.text("devices/system/cpu/online"), pci: map[string]device{}}
	m.Nodes = r.nodes()
	for _, name := range r.list("bus/pci/devices") {
		if d, ok := r.device(name); ok {
			m.pci[name] = d
		}
	}
	for _, name := range r.list("class/infiniband") {
		n := r.nic(name)
		n.NUMA = m.numa(n.PCI)
		m.NICs = append(m.NICs, n)
	}
	slices.SortFunc(m.NICs, func(a, b NIC) int { return natural(a.Name, b.Name) })
	return m, errors.Join(r.errs...)
}

// Fill adds to h what the machine has and h lacks: the CPUs and the NUMA node of each device, the links between
// devices, and the NICs that are up. It does not change what h already has, such as NVLinks. The Devices of h
// must have their PCI bus IDs.
func (m Machine) Fill(h *job.Host) {
	for i := range h.Devices {
		d := &h.Devices[i]
		if d.CPUs == "" {
			d.CPUs = m.pci[d.PCI].cpus
		}
		if d.NUMA == "" {
			d.NUMA = m.numa(d.PCI)
		}
	}
	if h.Links == nil && len(h.Devices) > 1 {
		h.Links = make([][]job.Link, len(h.Devices))
		for i := range h.Links {
			h.Links[i] = make([]job.Link, len(h.Devices))
		}
	}
	for i, row := range h.Links {
		for j := range row {
			if a, b := h.Devices[i], h.Devices[j]; i == j || row[j] != "" {
				continue
			} else if a.GPU != "" && a.GPU == b.GPU {
				row[j] = job.LinkPSB
			} else {
				row[j] = m.Link(a.PCI, b.PCI)
			}
		}
	}
	m.fillNICs(h)
}

func (m Machine) fillNICs(h *job.Host) {
	var nics []job.NIC
	for _, nic := range h.NICs {
		if !slices.ContainsFunc(m.NICs, func(own NIC) bool { return own.Name == nic.Name }) {
			nics = append(nics, nic) // the driver knows this NIC, but the kernel does not show it
		}
	}
	for _, own := range m.NICs {
		if !own.Up() {
			continue
		}
		nic := job.NIC{Name: own.Name}
		if i := slices.IndexFunc(h.NICs, func(nic job.NIC) bool { return nic.Name == own.Name }); i >= 0 {
			nic = h.NICs[i]
		}
		nic.PCI = own.PCI
		if nic.NUMA == "" {
			nic.NUMA = own.NUMA
		}
		links := make([]job.Link, len(h.Devices))
		for i, d := range h.Devices {
			if i < len(nic.Links) && nic.Links[i] != "" {
				links[i] = nic.Links[i]
			} else {
				links[i] = m.Link(own.PCI, d.PCI)
			}
		}
		nic.Links = links
		nics = append(nics, nic)
	}
	h.NICs = nics
}

// reader reads files, and collects the errors.
type reader struct {
	fsys fs.FS
	errs []error
}

func (r *reader) note(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.errs = append(r.errs, err)
	}
}

// text returns the content of a file without white space around it. It returns "" if there is no such file.
func (r *reader) text(name string) string {
	b, err := fs.ReadFile(r.fsys, name)
	r.note(err)
	return strings.TrimSpace(string(b))
}

// list returns the sorted names in a directory.
func (r *reader) list(name string) []string {
	entries, err := fs.ReadDir(r.fsys, name)
	r.note(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// link returns the target of a symbolic link, as a path below /sys.
func (r *reader) link(name string) string {
	target, err := fs.ReadLink(r.fsys, name)
	if err != nil {
		r.note(err)
		return ""
	}
	return path.Join(path.Dir(name), target)
}

func (r *reader) nodes() []Node {
	const dir = "devices/system/node"
	var nodes []Node
	for _, name := range r.list(dir) {
		number, ok := strings.CutPrefix(name, "node")
		id, err := strconv.Atoi(number)
		if !ok || err != nil || id < 0 {
			continue
		}
		n := Node{ID: id, CPUs: r.text(path.Join(dir, name, "cpulist"))}
		for _, field := range strings.Fields(r.text(path.Join(dir, name, "distance"))) {
			d, err := strconv.Atoi(field)
			if err != nil {
				r.note(fmt.Errorf("%s/%s/distance: %w", dir, name, err))
				n.Distances = nil
				break
			}
			n.Distances = append(n.Distances, d)
		}
		n.Memory = memory(r.text(path.Join(dir, name, "meminfo")))
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return a.ID - b.ID })
	return nodes
}

// memory returns the number of bytes in a line such as "Node 0 MemTotal: 1056473196 kB".
func memory(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		f := strings.Fields(line)
		if len(f) == 5 && f[2] == "MemTotal:" && f[4] == "kB" {
			if n, err := strconv.ParseInt(f[3], 10, 64); err == nil && n >= 0 && n < 1<<53 {
				return n << 10
			}
		}
	}
	return 0
}
