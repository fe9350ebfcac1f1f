package nvml

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// reasons has the names of the bits of QueryThrottle, as nvidia-smi writes them.
var reasons = [...]string{
	"gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
	"sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clocks_setting",
}

// recoveries has the names of the answers to QueryRecovery, as nvidia-smi writes them. The answer 0 means none.
var recoveries = [...]string{1: "reset", "reboot", "drain p2p", "drain and reset", "recover imex", "bus reset", "system reboot"}

// modes has the modes for the answers to QueryComputeMode.
var modes = [...]ComputeMode{ComputeDefault, ComputeExclusiveThread, ComputeProhibited, ComputeExclusiveProcess}

// Read returns the Report of lib. If a value cannot be read, the reason is in the Errors of the Report or of
// the Device. If lib cannot be initialised, the Report has only Source, Failed and NoDriver. describe returns
// the user and the name of the process pid, or empty strings.
func Read(lib Library, describe func(pid int) (user, name string)) Report {
	r := Report{Source: "gangrun-nvml", Devices: []Device{}}
	if err := lib.Init(); err != nil {
		r.Failed, r.NoDriver = err.Error(), errors.Is(err, ErrNoDriver)
		return r
	}
	errs := faults{&r.Errors}
	if a, err := lib.Ask(QueryDriver); !errs.note(err, "driver") {
		r.Driver = a.Text
	}
	if a, err := lib.Ask(QueryCUDA); !errs.note(err, "cuda") {
		r.CUDA = fmt.Sprintf("%d.%d", a.Numbers[0]/1000, a.Numbers[0]%1000/10)
	}
	count, err := lib.Ask(QueryCount)
	if errs.note(err, "devices") {
		return r
	}
	var handles []GPU // a handle is nil if there is none
	for i := range integer(count.Numbers[0]) {
		g, err := lib.GPU(i)
		switch {
		case errors.Is(err, ErrNoPermission): // the GPU belongs to another container or job
			errs.note(fmt.Errorf("GPU %d: %w", i, err), "devices")
			continue
		case err != nil:
			r.Devices = append(r.Devices, Device{Index: i, Lost: err.Error(), Errors: map[string]string{"uuid": err.Error()}})
		default:
			r.Devices = append(r.Devices, readDevice(g, i, describe))
		}
		handles = append(handles, g)
	}
	if len(handles) > 0 {
		r.Links = readLinks(r.Devices, handles)
	}
	return r
}

// faults records why fields could not be read. The keys are the names of the fields.
type faults struct{ errs *map[string]string }

// note records err for the fields, and reports whether err is an error. It keeps the first error of each field.
func (f faults) note(err error, fields ...string) bool {
	if err == nil {
		return false
	}
	if *f.errs == nil {
		*f.errs = map[string]string{}
	}
	why := err.Error()
	if errors.Is(err, ErrNotSupported) && !strings.Contains(strings.ToLower(why), lacks) {
		why = lacks + ": " + why
	}
	for _, field := range fields {
		if _, noted := (*f.errs)[field]; !noted {
			(*f.errs)[field] = why
		}
	}
	return true
}

// reader reads one GPU.
type reader struct {
	faults
	gpu GPU
	d   *Device
}

// note is faults.note. It also sets Lost or Recovery if err concerns the whole GPU.
func (r reader) note(err error, fields ...string) bool {
	if errors.Is(err, ErrLost) && r.d.Lost == "" {
		r.d.Lost = err.Error()
	}
	if errors.Is(err, ErrReset) && r.d.Recovery == "" {
		r.d.Recovery = "reset"
	}
	return r.faults.note(err, fields...)
}

// ask returns the answer of the GPU. If the GPU has no answer, ask notes the error for fields and
// returns false.
func (r reader) ask(q Query, fields ...string) (Answer, bool) {
	a, err := r.gpu.Ask(q, 0)
	return a, !r.note(err, fields...)
}

func readDevice(g GPU, index int, about func(pid int) (user, name string)) Device {
	d := Device{Index: index}
	r := reader{faults{&d.Errors}, g, &d}
	if a, err := g.Ask(QueryUUID, 0); !r.note(err, "uuid") {
		d.UUID = a.Text
	} else if d.Lost == "" && !errors.Is(err, ErrNotSupported) {
		d.Lost = "its UUID cannot be read: " + err.Error()
	}
	if a, ok := r.ask(QueryPCI, "pci"); ok {
		pci, err := BusID(a.Text)
		r.note(err, "pci")
		d.PCI = pci
	}
	if a, ok := r.ask(QueryName, "name"); ok {
		d.Name = a.Text
	}
	if a, ok := r.ask(QueryCPUs, "cpus"); ok {
		d.CPUs = list(a.Mask)
	}
	if a, ok := r.ask(QueryNUMA, "numa"); ok {
		d.NUMA = first(a.Mask)
	}
	if a, ok := r.ask(QueryMemory, "memory_total", "memory_used", "memory_free"); ok {
		d.MemoryTotal, d.MemoryUsed, d.MemoryFree = amount(a.Numbers[0]), amount(a.Numbers[1]), amount(a.Numbers[2])
	}
	if a, ok := r.ask(QueryComputeMode, "compute_mode"); ok {
		if n := a.Numbers[0]; n < uint64(len(modes)) {
			d.ComputeMode = modes[n]
		} else {
			r.note(fmt.Errorf("%d is no compute mode that is known", n), "compute_mode")
		}
	}
	if a, ok := r.ask(QueryUtilisation, "utilisation_gpu", "utilisation_memory"); ok {
		d.UtilisationGPU, d.UtilisationMemory = integer(a.Numbers[0]), integer(a.Numbers[1])
	}
	r.readErrors()
	if a, ok := r.ask(QueryThrottle, "throttle"); ok {
		d.Throttle = throttle(a.Numbers[0])
	}
	if a, ok := r.ask(QueryRecovery, "recovery"); ok {
		if action := recovery(a.Numbers[0]); action != "" { // otherwise the errors that were recorded before remain
			d.Recovery = action
		}
	}
	parts := r.readInstances()
	r.readProcesses(parts)
	for i := range d.Processes {
		p := &d.Processes[i]
		p.User, p.Name = about(p.PID)
	}
	return d
}

// readErrors reads what the GPU reports about errors of its memory.
func (r reader) readErrors() {
	if a, ok := r.ask(QueryECCMode, "ecc"); ok && a.Numbers[0] == 1 {
		r.d.ECC.Enabled = true
		if a, ok := r.ask(QueryECC, "ecc"); ok {
			r.d.ECC.Corrected, r.d.ECC.Uncorrected = amount(a.Numbers[0]), amount(a.Numbers[1])
			r.d.ECC.AggregateCorrected, r.d.ECC.AggregateUncorrected = amount(a.Numbers[2]), amount(a.Numbers[3])
		}
		// GPUs before Ampere have no thresholds to exceed.
		if a, err := r.gpu.Ask(QuerySRAM, 0); err == nil {
			r.d.ECC.SRAMThresholdsExceeded = a.Numbers[0] == 1
		} else if !errors.Is(err, ErrNotSupported) {
			r.note(err, "ecc")
		}
	}
	if a, ok := r.ask(QueryRetired, "retired_pages"); ok {
		r.d.Retired = RetiredPages{integer(a.Numbers[0]), integer(a.Numbers[1]), a.Numbers[2] == 1}
	}
	if a, ok := r.ask(QueryRemapped, "remapped_rows"); ok {
		r.d.Remapped = RemappedRows{integer(a.Numbers[0]), integer(a.Numbers[1]), a.Numbers[2] == 1, a.Numbers[3] == 1}
	}
}

// recovery returns the name of an answer to QueryRecovery, or "".
func recovery(n uint64) string {
	if n < uint64(len(recoveries)) {
		return recoveries[n]
	}
	return fmt.Sprintf("action %d, which is not known", n)
}

// throttle returns the names of the bits in mask. A bit without a name gets its number.
func throttle(mask uint64) []string {
	var active []string
	for mask != 0 {
		bit := bits.TrailingZeros64(mask)
		mask &^= 1 << bit
		if bit < len(reasons) {
			active = append(active, reasons[bit])
		} else {
			active = append(active, fmt.Sprintf("%#x", uint64(1)<<bit))
		}
	}
	return active
}

// list returns a set in the form that Linux uses, as in 0-15,32-47.
func list(mask []uint64) string {
	in := func(n int) bool { return n < 64*len(mask) && mask[n/64]>>(n%64)&1 == 1 }
	var text strings.Builder
	for n := 0; n < 64*len(mask); n++ {
		if !in(n) {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(n))
		first := n
		for in(n + 1) {
			n++
		}
		if n > first {
			text.WriteString("-" + strconv.Itoa(n))
		}
	}
	return text.String()
}

// first returns the smallest number of a set, or "" if the set is empty. If the memory of GPUs is a NUMA node,
// too, the driver reports several nodes. The smallest number is then that of a node with CPUs.
func first(mask []uint64) string {
	for i, word := range mask {
		if word != 0 {
			return strconv.Itoa(64*i + bits.TrailingZeros64(word))
		}
	}
	return ""
}

// amount returns n, or 0 if the driver does not know the number. In that case the driver reports a number in
// which all, or nearly all, bits are set.
func amount(n uint64) int64 {
	if n > math.MaxInt64 {
		return 0
	}
	return int64(n)
}

func integer(n uint64) int {
	if n > math.MaxInt32 {
		return 0
	}
	return int(n)
}
