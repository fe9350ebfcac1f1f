package main

import (
	"fmt"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/probe"
)

// pretend returns the hosts of a job's inventory that this machine is to stand
// for, with the GPUs that they are said to have.
func pretend(spec job.Spec) ([]job.Host, error) {
	text, err := readList(spec.Inventory)
	if err != nil {
		return nil, err
	}
	list, err := inventory.YAML(spec.Inventory, text, inventory.Files{Read: inventory.ReadFile, Topo: parseTopo})
	if err != nil {
		return nil, &failure{code: exitUsage, err: err}
	}
	if len(list.Hosts) < spec.Loopback {
		return nil, usage(fmt.Sprintf("write --loopback %d, or name more hosts in the inventory", len(list.Hosts)),
			"the inventory %s has %s, and loopback asks for %d", spec.Inventory, plural(len(list.Hosts), "host"), spec.Loopback)
	}
	hosts := list.Hosts[:spec.Loopback]
	for i := range hosts {
		hosts[i].Address = "127.0.0.1"
	}
	return hosts, nil
}

func parseTopo(text []byte) ([]job.Device, [][]job.Link, []job.NIC, error) {
	return probe.ParseTopo(string(text))
}
