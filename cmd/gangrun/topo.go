package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// topoFormats are how topo can print.
var topoFormats = map[string]func(io.Writer, hostList) error{
	"text": printTopoText, "json": printTopoJSON, "dot": printTopoDot, "svg": printTopoSVG,
}

func topoCommand() *cli.Command {
	return &cli.Command{
		Name:  "topo",
		Usage: "show GPUs, what connects them, and who uses them",
		Description: "One host is shown as a matrix of its GPUs and NICs, several by racks and switches.\n" +
			"Hosts come from --inventory, --hosts or --hostfile, else from the batch system's\n" +
			"allocation, else it is this machine.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "o", Usage: "print as `FORMAT`: text, json, dot (for graphviz) or svg", Value: "text"},
			&cli.StringFlag{Name: "host", Usage: "show `HOST` of the list alone"},
		}, hostFlags()...),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("gangrun topo --inventory lab.yaml --host NAME shows one host of a list", "topo takes no arguments, got %q", c.Args().Slice())
			}
			show, ok := topoFormats[c.String("o")]
			if !ok {
				return failure.Usage("write -o text, -o json, -o dot or -o svg", "-o %q is no format", c.String("o"))
			}
			list, err := readHosts(c)
			if err != nil {
				return err
			}
			if name := c.String("host"); c.IsSet("host") {
				if list.Hosts, err = oneHost(list.Hosts, name); err != nil {
					return err
				}
			}
			if c.String("o") == "text" {
				list.tellNotes(c.App.ErrWriter) // findings are part of the text
			} else {
				list.tell(c.App.ErrWriter)
			}
			return show(c.App.Writer, list)
		},
	}
}

// oneHost returns the host of that name.
func oneHost(hosts []job.Host, name string) ([]job.Host, error) {
	var names []string
	for i, h := range hosts {
		if h.Name == name {
			return hosts[i : i+1], nil
		}
		names = append(names, h.Name)
	}
	hint := "its hosts are: " + few(names)
	if near := nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return nil, failure.Usage(hint, "the list has no host %q", name)
}

// topoReport is what topo prints as JSON.
type topoReport struct {
	Hosts    []topoHost    `json:"hosts"`
	Machine  *topoMachine  `json:"machine"` // this machine, where it was looked at
	Findings []job.Finding `json:"findings"`
}

// topoHost is a host, and how its GPUs hang together.
type topoHost struct {
	job.Host
	Islands [][]string `json:"islands"` // of UUIDs
}

// topoMachine is what is known of this machine beside its GPUs.
type topoMachine struct {
	CPUs   string     `json:"cpus"`
	NUMA   []topoNode `json:"numa"`
	NICs   []topoNIC  `json:"nics"`
	Driver string     `json:"driver"` // empty where there is none
	CUDA   string     `json:"cuda"`   // the newest that the driver can run
	Source string     `json:"source"` // the program that told of the GPUs
}

// topoNode is a NUMA node.
type topoNode struct {
	ID        int    `json:"id"`
	CPUs      string `json:"cpus"`
	Memory    int64  `json:"memory"` // bytes; 0 is not known
	Distances []int  `json:"distances"`
}

// topoNIC is a NIC of this machine.
type topoNIC struct {
	Name string   `json:"name"`
	PCI  string   `json:"pci"`
	NUMA string   `json:"numa"`
	Nets []string `json:"nets"`
	Up   bool     `json:"up"`
	Rate string   `json:"rate"` // of its first port
}

func printTopoJSON(w io.Writer, l hostList) error {
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
	if l.own != nil {
		r.Machine = l.own.report()
		r.Findings = append(r.Findings, l.own.findings...)
	}
	return view.JSON(w, r)
}

// report is what topo tells of this machine.
func (m *ownMachine) report() *topoMachine {
	t := &topoMachine{CPUs: m.kernel.CPUs, NUMA: []topoNode{}, NICs: []topoNIC{}, Driver: m.driver.Driver, CUDA: m.driver.CUDA, Source: m.driver.Source}
	for _, n := range m.kernel.Nodes {
		t.NUMA = append(t.NUMA, topoNode{n.ID, n.CPUs, n.Memory, n.Distances})
	}
	for _, n := range m.kernel.NICs {
		nic := topoNIC{Name: n.Name, PCI: n.PCI, NUMA: n.NUMA, Nets: n.Nets, Up: n.Up()}
		if len(n.Ports) > 0 {
			nic.Rate = n.Ports[0].Rate
		}
		t.NICs = append(t.NICs, nic)
	}
	return t
}

// rack is the hosts of one rack, by switch, in the order of the list.
type rack struct {
	name     string
	switches []rackSwitch
}

type rackSwitch struct {
	name  string
	hosts []job.Host
}

// byRack gathers hosts by rack and switch; a name that is empty is not known.
func byRack(hosts []job.Host) []rack {
	var racks []rack
	rackAt, switchAt := map[string]int{}, map[[2]string]int{}
	for _, h := range hosts {
		r, ok := rackAt[h.Rack]
		if !ok {
			r = len(racks)
			rackAt[h.Rack] = r
			racks = append(racks, rack{name: h.Rack})
		}
		key := [2]string{h.Rack, h.Switch}
		s, ok := switchAt[key]
		if !ok {
			s = len(racks[r].switches)
			switchAt[key] = s
			racks[r].switches = append(racks[r].switches, rackSwitch{name: h.Switch})
		}
		racks[r].switches[s].hosts = append(racks[r].switches[s].hosts, h)
	}
	return racks
}

// gpuCount says how many GPUs a host has, and how many of them are free. MIG
// instances count, and GPUs that are cut into them do not.
func gpuCount(h job.Host) string {
	states, _ := gpuStates(h)
	n := tally(states)
	all := len(states) - n[topology.DeviceCut]
	switch {
	case all == 0:
		return "no GPUs known"
	case n[topology.DeviceFree] == all:
		return plural(all, "GPU") + ", all free"
	}
	text := fmt.Sprintf("%s, %d free", plural(all, "GPU"), n[topology.DeviceFree])
	if n[topology.DeviceBusy] > 0 {
		text += fmt.Sprintf(", %d busy", n[topology.DeviceBusy])
	}
	if n[topology.DeviceSick] > 0 {
		text += fmt.Sprintf(", %d sick", n[topology.DeviceSick])
	}
	return text
}

// islandText says how the GPUs of a host hang together, as in
// "2 islands of 4 (NV2), SYS between them".
func islandText(h job.Host) string {
	islands := topology.Islands(h)
	if len(h.Links) == 0 || len(islands) == 0 {
		if len(h.Devices) > 1 {
			return "links not known"
		}
		return ""
	}
	of := islandOf(h, islands)
	inside := linksAmong(h, func(a, b int) bool { return of[a] == of[b] })
	between := linksAmong(h, func(a, b int) bool { return of[a] != of[b] })
	var sizes []string
	for _, island := range islands {
		if size := strconv.Itoa(len(island)); !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
	}
	text := plural(len(islands), "island") + " of " + strings.Join(sizes, " and ")
	if len(inside) > 0 {
		text += " (" + linkList(inside) + ")"
	}
	if len(between) > 0 {
		text += ", " + linkList(between) + " between"
	}
	return text
}

// islandOf is the island of each device, -1 for none.
func islandOf(h job.Host, islands [][]int) []int {
	of := make([]int, len(h.Devices))
	for i := range of {
		of[i] = -1
	}
	for k, island := range islands {
		for _, i := range island {
			of[i] = k
		}
	}
	return of
}
