package inventory

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/job"
)

// MaxTopo is the maximum size of a topo file, in bytes.
const MaxTopo = 1 << 20

// machine describes the hardware of a host.
type machine struct {
	devices []job.Device
	links   [][]job.Link
	nics    []job.NIC
	failed  bool // an error about the machine was reported
}

// machine reads the keys topo and gpus of a host.
func (y *yamlReader) machine(topo, gpus *yaml.Node) *machine {
	switch {
	case topo != nil && gpus != nil:
		y.bad(gpus.Line, faultf("leave gpus out", "gpus stands beside topo, which lists the GPUs already"))
		return &machine{failed: true}
	case topo != nil:
		return y.topo(topo)
	case gpus == nil:
		return &machine{}
	}
	m := &machine{}
	if n := y.number(gpus, "gpus", MaxGPUs); n > 0 {
		for i := range n {
			m.devices = append(m.devices, job.Device{UUID: deviceName(i), Index: i})
		}
	} else {
		m.failed = true
	}
	return m
}

// deviceName returns a UUID for a GPU whose real UUID is not known.
func deviceName(index int) string { return "GPU" + strconv.Itoa(index) }

// topo reads a topo file. It reads each file only once.
func (y *yamlReader) topo(n *yaml.Node) *machine {
	failed := &machine{failed: true}
	path, ok := y.scalar(n, "topo", `the file with the output of "nvidia-smi topo -m"`)
	if !ok {
		return failed
	}
	if strings.HasPrefix(path, "~") {
		y.bad(n.Line, faultf("write the whole path, or one relative to the inventory", "topo %s begins with ~, which only a shell expands", quote(path)))
		return failed
	}
	if strings.ContainsRune(path, 0) {
		y.bad(n.Line, faultf("write the path of a file", "topo %s is no path", quote(path)))
		return failed
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(y.source), path)
	}
	if m := y.machines[path]; m != nil {
		return m // the error was reported before
	}
	m := failed
	text, err := y.files.Read(path)
	if err != nil {
		y.bad(n.Line, faultf(`save the output of "nvidia-smi topo -m" there; relative paths are relative to the inventory`, "the topo file %s cannot be read: %v", quote(path), reason(err)))
	} else if len(text) > MaxTopo {
		y.bad(n.Line, faultf(`save the output of "nvidia-smi topo -m" and nothing else`, "the topo file %s is larger than %d MiB", quote(path), MaxTopo>>20))
	} else if devices, links, nics, err := y.files.Topo(text); err != nil {
		y.bad(n.Line, faultf(`save the whole output of "nvidia-smi topo -m"`, "the topo file %s: %s", quote(path), short(firstLine(err))))
	} else if bad := sound(devices, links, nics); bad != nil {
		y.bad(n.Line, faultf(bad.hint, "the topo file %s %s", quote(path), bad.text))
	} else {
		m = &machine{devices: name(devices), links: links, nics: nics}
	}
	y.machines[path] = m
	return m
}

// name returns a copy of devices in which each device has a UUID.
func name(devices []job.Device) []job.Device {
	devices = slices.Clone(devices)
	for i := range devices {
		if devices[i].UUID == "" {
			devices[i].UUID = deviceName(devices[i].Index)
		}
	}
	return devices
}

// sound returns a fault if the content of a topo file is not consistent.
func sound(devices []job.Device, links [][]job.Link, nics []job.NIC) *fault {
	if len(devices) == 0 {
		return faultf(`save the output of "nvidia-smi topo -m" of a host with GPUs`, "describes no GPU")
	}
	if len(devices) > MaxGPUs {
		return faultf("no host has so many; is it the right file?", "lists more than %d GPUs", MaxGPUs)
	}
	if len(nics) > MaxGPUs {
		return faultf("no host has so many; is it the right file?", "lists more than %d NICs", MaxGPUs)
	}
	const again = `save the output of "nvidia-smi topo -m" anew, as it is`
	seen := map[string]bool{}
	for _, d := range name(devices) {
		for _, id := range []string{"uuid " + d.UUID, "index " + strconv.Itoa(d.Index)} {
			if seen[id] {
				return faultf(again, "lists two GPUs with the %s", id)
			}
			seen[id] = true
		}
	}
	for i := range links {
		if len(links) != len(devices) || len(links[i]) != len(devices) {
			return faultf(again, "does not list every pair of GPUs")
		}
	}
	for _, n := range nics {
		if len(n.Links) != 0 && len(n.Links) != len(devices) {
			return faultf(again, "does not list the links of NIC %s to every GPU", quote(n.Name))
		}
	}
	return nil
}
