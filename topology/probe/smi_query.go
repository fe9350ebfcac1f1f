package probe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/topology/nvml"
)

// QueryError reports where the output of "nvidia-smi -q -x" is malformed.
type QueryError struct {
	Line, Column int // both count from 1
	Text         string
}

func (e *QueryError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Text)
}

// ParseQuery parses the output of "nvidia-smi -q -x", from any driver since 2016. The Errors of
// a Device say which values its GPU does not report. The output has neither the links between
// GPUs nor the UUIDs of MIG devices. If the output is malformed or incomplete, ParseQuery
// returns no report but a *QueryError.
func ParseQuery(text string) (nvml.Report, error) {
	root, err := readTree(text)
	if err != nil {
		return nvml.Report{}, err
	}
	r := nvml.Report{Source: "nvidia-smi", Devices: []nvml.Device{}}
	f := fields{root, &r.Errors}
	r.Driver = f.text("driver", "driver_version")
	r.CUDA = f.text("cuda", "cuda_version")
	for _, gpu := range root.children {
		if gpu.name == "gpu" {
			r.Devices = append(r.Devices, device(gpu, len(r.Devices)))
		}
	}
	return r, nil
}

// device reads one <gpu> element.
func device(gpu *node, index int) nvml.Device {
	d := nvml.Device{Index: index}
	f := fields{gpu, &d.Errors}
	id := f.text("pci", "pci/pci_bus_id")
	if _, err := nvml.BusID(id); err != nil && gpu.id != "" {
		id = gpu.id
	}
	if pci, err := nvml.BusID(id); err == nil {
		d.PCI = pci
		delete(d.Errors, "pci")
	} else if id != "" {
		f.failed("pci", err.Error())
	}
	d.UUID = f.text("uuid", "uuid")
	d.Name = f.text("name", "product_name")
	d.MemoryTotal = f.bytes("memory_total", "fb_memory_usage/total")
	d.MemoryUsed = f.bytes("memory_used", "fb_memory_usage/used")
	d.MemoryFree = f.bytes("memory_free", "fb_memory_usage/free")
	d.ComputeMode = computeMode(f)
	d.UtilisationGPU = int(f.number("utilisation_gpu", "utilization/gpu_util"))
	d.UtilisationMemory = int(f.number("utilisation_memory", "utilization/memory_util"))
	d.MIG, d.Instances = mig(gpu, d.UUID)
	d.Processes = processes(f)
	d.ECC = ecc(f)
	if f.text("retired_pages", "retired_pages/pending_retirement", "retired_pages/pending_blacklist") != "" {
		d.Retired.SingleBit = int(f.number("retired_pages", "retired_pages/multiple_single_bit_retirement/retired_count"))
		d.Retired.DoubleBit = int(f.number("retired_pages", "retired_pages/double_bit_retirement/retired_count"))
		d.Retired.Pending = f.yes("retired_pages/pending_retirement") || f.yes("retired_pages/pending_blacklist")
	}
	if f.text("remapped_rows", "remapped_rows/remapped_row_failure", "remapped_rows") != "" {
		d.Remapped.Correctable = int(f.number("remapped_rows", "remapped_rows/remapped_row_corr"))
		d.Remapped.Uncorrectable = int(f.number("remapped_rows", "remapped_rows/remapped_row_unc"))
		d.Remapped.Pending = f.yes("remapped_rows/remapped_row_pending")
		d.Remapped.Failure = f.yes("remapped_rows/remapped_row_failure")
	}
	d.Throttle = throttle(f)
	d.Recovery = recovery(f)
	for _, field := range slices.Sorted(maps.Keys(d.Errors)) {
		why := d.Errors[field]
		if isLost(why) && d.Lost == "" {
			d.Lost = why
		} else if strings.Contains(strings.ToLower(why), "requires reset") && d.Recovery == "" {
			d.Recovery = "reset"
		}
	}
	if why := d.Errors["uuid"]; d.Lost == "" && isFault(why) {
		d.Lost = "its UUID cannot be read: " + why
	}
	return d
}

// isLost reports whether text is a message of the driver about a GPU that has fallen off the bus.
func isLost(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "gpu is lost") || strings.Contains(text, "fallen off the bus")
}

// isFault reports whether text, in place of a value, is a message about a faulty GPU.
func isFault(text string) bool {
	return strings.Contains(strings.ToLower(text), "requires reset") || strings.EqualFold(text, "unknown error") || text == "ERR!"
}

func computeMode(f fields) nvml.ComputeMode {
	switch text := f.text("compute_mode", "compute_mode"); text {
	case "":
		return ""
	case "Default":
		return nvml.ComputeDefault
	case "Exclusive_Process":
		return nvml.ComputeExclusiveProcess
	case "Exclusive_Thread":
		return nvml.ComputeExclusiveThread
	case "Prohibited":
		return nvml.ComputeProhibited
	default:
		f.failed("compute_mode", fmt.Sprintf("%q is no compute mode that is known", text))
		return ""
	}
}

// mig reads the MIG devices. They have no UUIDs. So they get other names that CUDA_VISIBLE_DEVICES accepts
// since the first drivers with MIG.
func mig(gpu *node, uuid string) (bool, []nvml.Instance) {
	if mode := gpu.find("mig_mode/current_mig"); mode == nil || mode.text() != "Enabled" {
		return false, nil
	}
	list := gpu.find("mig_devices")
	if list == nil {
		return true, nil
	}
	var instances []nvml.Instance
	for _, n := range list.children {
		if n.name != "mig_device" {
			continue
		}
		f := fields{n, new(map[string]string)}
		i := nvml.Instance{
			Index:           int(f.number("index", "index")),
			GPUInstance:     int(f.number("gpu_instance", "gpu_instance_id")),
			ComputeInstance: int(f.number("compute_instance", "compute_instance_id")),
			MemoryTotal:     f.bytes("memory_total", "fb_memory_usage/total"),
			MemoryUsed:      f.bytes("memory_used", "fb_memory_usage/used"),
			MemoryFree:      f.bytes("memory_free", "fb_memory_usage/free"),
			UUID:            f.text("uuid", "uuid"),
		}
		if i.UUID == "" {
			i.UUID = fmt.Sprintf("MIG-%s/%d/%d", uuid, i.GPUInstance, i.ComputeInstance)
		}
		instances = append(instances, i)
	}
	return true, instances
}

func processes(f fields) []nvml.Process {
	list := f.node.find("processes")
	if list == nil || len(list.children) == 0 && list.text() != "" && list.text() != "None" {
		f.text("processes", "processes")
		return nil
	}
	var found []nvml.Process
	for _, n := range list.children {
		if n.name != "process_info" {
			continue
		}
		g := fields{n, new(map[string]string)}
		p := nvml.Process{
			PID: int(g.number("pid", "pid")), Type: g.text("type", "type"),
			Name: g.text("name", "process_name"), Memory: g.bytes("memory", "used_memory"),
			GPUInstance: g.instance("gpu_instance_id"), ComputeInstance: g.instance("compute_instance_id"),
		}
		if why, bad := (*g.errs)["pid"]; bad {
			f.failed("processes", "the number of one: "+why)
		}
		found = append(found, p)
	}
	return found
}

// ecc adds up memory errors. Drivers before 450 report single bit and double bit errors. Later drivers report
// correctable and uncorrectable errors of SRAM and DRAM.
func ecc(f fields) nvml.ECC {
	mode := f.text("ecc", "ecc_mode/current_ecc")
	if mode != "Enabled" {
		return nvml.ECC{}
	}
	e := nvml.ECC{Enabled: true, SRAMThresholdsExceeded: f.yes("ecc_errors/aggregate/sram_threshold_exceeded")}
	for _, count := range []struct {
		into *int64
		path string
		old  string
		is   func(name string) bool
	}{
		{&e.Corrected, "ecc_errors/volatile", "single_bit/total", isCorrectable},
		{&e.Uncorrected, "ecc_errors/volatile", "double_bit/total", isUncorrectable},
		{&e.AggregateCorrected, "ecc_errors/aggregate", "single_bit/total", isCorrectable},
		{&e.AggregateUncorrected, "ecc_errors/aggregate", "double_bit/total", isUncorrectable},
	} {
		n := f.node.find(count.path)
		if n == nil {
			f.failed("ecc", "nvidia-smi does not report "+count.path)
			continue
		}
		if n.find(count.old) != nil {
			*count.into = f.number("ecc", count.path+"/"+count.old)
			continue
		}
		for _, child := range n.children {
			if count.is(child.name) {
				*count.into += f.number("ecc", count.path+"/"+child.name)
			}
		}
	}
	return e
}

func isCorrectable(name string) bool { return name == "sram_correctable" || name == "dram_correctable" }

func isUncorrectable(name string) bool {
	return strings.HasPrefix(name, "sram_uncorrectable") || strings.HasPrefix(name, "dram_uncorrectable")
}

func throttle(f fields) []string {
	for _, name := range []string{"clocks_event_reasons", "clocks_throttle_reasons"} {
		n := f.node.find(name)
		if n == nil {
			continue
		}
		if len(n.children) == 0 {
			f.text("throttle", name)
			return nil
		}
		var active []string
		for _, child := range n.children {
			if child.text() == "Active" {
				short := strings.TrimPrefix(strings.TrimPrefix(child.name, "clocks_event_reason_"), "clocks_throttle_reason_")
				active = append(active, short)
			}
		}
		return active
	}
	f.failed("throttle", "nvidia-smi does not report it")
	return nil
}

// recovery returns what drivers since 525 say must be done before the GPU can be used again.
func recovery(f fields) string {
	if n := f.node.find("gpu_recovery_action"); n != nil {
		if text := n.text(); text != "" && text != "None" && text != "N/A" {
			return strings.ToLower(text)
		}
	}
	switch {
	case f.yes("gpu_reset_status/reset_required"):
		return "reset"
	case f.yes("gpu_reset_status/drain_and_reset_recommended"):
		return "drain and reset"
	}
	return ""
}
