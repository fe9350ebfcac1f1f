package nvml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// BusyMemory is a limit in bytes. If more of a GPU's memory is in use, the GPU counts as busy even if no
// process is visible. On an idle GPU, MIG or a display server uses at most about 100 MiB. On every GPU since
// Volta, one CUDA context uses more than BusyMemory.
const BusyMemory = 256 << 20

// Fill sets the devices, links and NICs of h to those of the report. A GPU in MIG mode is
// replaced by its instances. A process makes its GPU busy, unless ours returns true for the
// process. If ours is nil, every process makes its GPU busy.
func (r Report) Fill(h *job.Host, ours func(Process) bool) {
	if ours == nil {
		ours = func(Process) bool { return false }
	}
	var from []int // the GPU of each device
	h.Devices, h.Links, h.NICs = nil, nil, nil
	for i, d := range r.Devices {
		for _, device := range d.devices(ours) {
			h.Devices, from = append(h.Devices, device), append(from, i)
		}
	}
	if r.Links != nil {
		h.Links = make([][]job.Link, len(from))
		for a := range from {
			h.Links[a] = make([]job.Link, len(from))
			for b := range from {
				switch {
				case a == b:
				case from[a] == from[b]:
					h.Links[a][b] = job.LinkPSB
				default:
					h.Links[a][b] = r.Links[from[a]][from[b]]
				}
			}
		}
	}
	for _, nic := range r.NICs {
		if links := nic.Links; links != nil {
			nic.Links = make([]job.Link, len(from))
			for a, i := range from {
				nic.Links[a] = links[i]
			}
		}
		h.NICs = append(h.NICs, nic)
	}
}

// devices returns the GPU, or its MIG instances.
func (d Device) devices(ours func(Process) bool) []job.Device {
	whole := job.Device{
		UUID: d.UUID, Index: d.Index, Name: d.Name, PCI: d.PCI, Memory: d.MemoryTotal,
		CPUs: d.CPUs, NUMA: d.NUMA, Sick: d.sick(),
	}
	if whole.UUID == "" {
		whole.UUID = fmt.Sprintf("GPU%d", d.Index)
	}
	if d.Lost != "" || !d.MIG || len(d.Instances) == 0 {
		if d.Lost == "" {
			whole.Busy = d.busy(d.Processes, d.MemoryUsed, d.MemoryTotal, ours)
		}
		return []job.Device{whole}
	}
	var parts []job.Device
	for _, instance := range d.Instances {
		part := whole
		part.UUID, part.GPU = instance.UUID, whole.UUID
		part.Name = strings.TrimSpace(d.Name + " MIG " + instance.Profile)
		part.Memory = instance.MemoryTotal
		processes := slices.DeleteFunc(slices.Clone(d.Processes), func(p Process) bool {
			return p.GPUInstance != nil && *p.GPUInstance != instance.GPUInstance ||
				p.ComputeInstance != nil && *p.ComputeInstance != instance.ComputeInstance
		})
		part.Busy = d.busy(processes, instance.MemoryUsed, instance.MemoryTotal, ours)
		parts = append(parts, part)
	}
	return parts
}

// sick returns what is wrong with the GPU, and what to do about it. It returns "" if nothing is wrong.
func (d Device) sick() string {
	const reset = "it needs a reset (sudo nvidia-smi --gpu-reset -i %s) or a reboot"
	name := d.PCI
	if name == "" {
		name = fmt.Sprint(d.Index)
	}
	var says []string
	say := func(format string, args ...any) { says = append(says, fmt.Sprintf(format, args...)) }
	if d.Lost != "" {
		say("the driver cannot speak to it: %s; it may have fallen off the bus: look for XID 79 in dmesg, and reboot the host", d.Lost)
	}
	if d.Recovery != "" {
		say("the driver asks for a recovery: %s", d.Recovery)
	}
	if n := d.ECC.Uncorrected; n > 0 {
		say("%d uncorrectable ECC errors since it was last reset: "+reset, n, name)
	}
	if d.ECC.SRAMThresholdsExceeded {
		say("its SRAM has had more uncorrectable errors than NVIDIA allows: have it replaced")
	}
	if d.Retired.Pending {
		say("retired pages are pending: "+reset, name)
	}
	if d.Remapped.Failure {
		say("a row of its memory could not be remapped: have it replaced")
	} else if d.Remapped.Pending && d.Remapped.Uncorrectable > 0 {
		say("remapped rows are pending after uncorrectable errors: "+reset, name)
	}
	if d.MIG && len(d.Instances) == 0 && d.Errors["instances"] == "" {
		say("MIG mode is on and it has no instances, so that CUDA cannot use it: make some (nvidia-smi mig -cgi), or turn MIG off (nvidia-smi -mig 0)")
	}
	return strings.Join(says, "; ")
}

// busy returns who uses a GPU or an instance, or "". processes has its processes. They use used of total bytes
// of its memory.
func (d Device) busy(processes []Process, used, total int64, ours func(Process) bool) string {
	var foreign, inMode []string
	blurred := false // WSL: a display server uses an unknown amount
	for _, p := range processes {
		known := ours(p)
		if known || !p.computes() {
			used -= p.Memory
			blurred = blurred || p.Memory == 0
		}
		if !known && p.computes() {
			foreign = append(foreign, p.String())
		}
	}
	switch d.ComputeMode {
	case ComputeProhibited:
		return "its compute mode is prohibited: no CUDA program may use it (nvidia-smi -c 0 allows it)"
	case ComputeExclusiveProcess, ComputeExclusiveThread:
		inMode = []string{"its compute mode is " + string(d.ComputeMode)}
	}
	if len(foreign) > 0 {
		const most = 3
		more := ""
		if n := len(foreign) - most; n > 0 {
			foreign, more = foreign[:most], fmt.Sprintf(" and %d more", n)
		}
		return strings.Join(append([]string{"used by " + strings.Join(foreign, ", ") + more}, inMode...), "; ")
	}
	if used > BusyMemory && !blurred {
		return strings.Join(append([]string{fmt.Sprintf("%s of %s of its memory are in use, by no process that can be seen", size(used), size(total))}, inMode...), "; ")
	}
	return ""
}

// computes reports whether the process computes. Display servers and the like do not.
func (p Process) computes() bool { return p.Type != "G" }

// String describes the process, as in "pid 4242 (python, user ada, 10.2 GiB)".
func (p Process) String() string {
	var about []string
	if p.Name != "" {
		about = append(about, p.Name)
	}
	if p.User != "" {
		about = append(about, "user "+p.User)
	}
	if p.Memory > 0 {
		about = append(about, size(p.Memory))
	}
	text := fmt.Sprintf("pid %d", p.PID)
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text
}

func size(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
