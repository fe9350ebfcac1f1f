package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

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

// withGPUs adds this machine's GPUs to what is known of it. A machine on which
// there is no sign of NVIDIA's driver is not asked: that would take time.
func withGPUs(ctx context.Context, h job.Host, options probe.Options) (job.Host, []job.Finding) {
	_, errDevice := os.Stat("/dev/nvidiactl")
	_, errDriver := os.Stat("/proc/driver/nvidia")
	_, errTool := exec.LookPath("nvidia-smi")
	if errDevice != nil && errDriver != nil && errTool != nil {
		return h, []job.Finding{{
			Check: probe.Check, Severity: job.SeverityNote,
			Text: "no NVIDIA driver: there is neither /dev/nvidiactl nor /proc/driver/nvidia, and nvidia-smi is not in PATH",
			Hint: "install the NVIDIA driver, or start the ranks without GPUs: --gpus-per-rank 0",
		}}
	}
	cores, slots := h.Cores, h.Slots
	m, err := lookAt(ctx, &h, os.DirFS("/sys"), options)
	h.Cores, h.Slots = cores, slots
	var refused *failure
	if errors.As(err, &refused) { // nothing is known of what may be used
		h.Devices = nil
		return h, []job.Finding{{Check: probe.Check, Severity: job.SeverityError, Host: h.Name, Text: err.Error()}}
	}
	if err != nil {
		return h, nil // the run is ending
	}
	return h, m.findings
}
