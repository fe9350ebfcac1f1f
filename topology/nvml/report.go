// Package nvml defines the report that gangrun-nvml prints as JSON about the GPUs of a
// host, reads it from the NVIDIA driver, and makes a job.Host of it.
package nvml

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Report is what was found on one host. gangrun-nvml prints a Report as JSON on its
// standard output and exits with 0, even if there is no driver.
type Report struct {
	Source string `json:"source"` // the program that was asked: gangrun-nvml or nvidia-smi
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"` // the newest CUDA that the driver can run
	// Failed is NVML's error if it could not be used at all. NoDriver is true if the reason
	// is that the host has no driver.
	Failed   string   `json:"failed,omitempty"`
	NoDriver bool     `json:"no_driver,omitempty"`
	Devices  []Device `json:"devices"`
	// Links has the link between each pair of Devices; nil if nothing is known. It is
	// symmetric, and its diagonal is empty.
	Links [][]job.Link `json:"links,omitempty"`
	// NICs are the NICs that the driver knows. Their Links are to Devices.
	NICs   []job.NIC `json:"nics,omitempty"`
	Events []Event   `json:"events,omitempty"`
	// Errors has the reasons why fields could not be read, by the JSON name of the field.
	// Lacks tells which reasons are no fault.
	Errors map[string]string `json:"errors,omitempty"`
}

// Device is one GPU. A field that could not be read is zero, and Errors has the reason. A
// field that is zero and not in Errors is known to be zero.
type Device struct {
	UUID  string `json:"uuid,omitempty"`
	Index int    `json:"index"` // NVML's: in the order of PCI bus ids
	PCI   string `json:"pci,omitempty"`
	Name  string `json:"name,omitempty"`
	CPUs  string `json:"cpus,omitempty"` // list of the CPUs close to it, as in 0-15,32-47
	NUMA  string `json:"numa,omitempty"` // number of the NUMA node close to it, the first of several

	MemoryTotal int64 `json:"memory_total,omitempty"` // bytes, as the next two
	MemoryUsed  int64 `json:"memory_used,omitempty"`  // without what the driver reserves for itself, where it reports the two apart
	MemoryFree  int64 `json:"memory_free,omitempty"`

	MIG         bool        `json:"mig,omitempty"` // MIG mode is on
	Instances   []Instance  `json:"instances,omitempty"`
	ComputeMode ComputeMode `json:"compute_mode,omitempty"`
	Processes   []Process   `json:"processes,omitempty"`

	UtilisationGPU    int `json:"utilisation_gpu,omitempty"`    // percent of the last sample in which a kernel ran
	UtilisationMemory int `json:"utilisation_memory,omitempty"` // percent in which its memory was read or written

	ECC      ECC          `json:"ecc,omitzero"`
	Retired  RetiredPages `json:"retired_pages,omitzero"`
	Remapped RemappedRows `json:"remapped_rows,omitzero"`
	// Throttle has the reasons why the clocks are not at their highest, in nvidia-smi's
	// words: gpu_idle, sw_power_cap, hw_thermal_slowdown and so on.
	Throttle []string `json:"throttle,omitempty"`
	// Recovery is what the driver demands before the GPU can be trusted again, as in
	// "reset" or "reboot".
	Recovery string `json:"recovery,omitempty"`
	// Lost is the driver's error for a GPU that it cannot reach any more. Then only UUID,
	// Index and PCI may be known.
	Lost   string            `json:"lost,omitempty"`
	Errors map[string]string `json:"errors,omitempty"`
}

// Instance is one MIG device of a GPU.
type Instance struct {
	// UUID is the driver's, or what CUDA_VISIBLE_DEVICES takes in its place.
	UUID            string `json:"uuid"`
	Index           int    `json:"index"` // among the MIG devices of its GPU
	GPUInstance     int    `json:"gpu_instance"`
	ComputeInstance int    `json:"compute_instance"`
	Profile         string `json:"profile,omitempty"`      // as in 3g.20gb
	MemoryTotal     int64  `json:"memory_total,omitempty"` // bytes, as the next two
	MemoryUsed      int64  `json:"memory_used,omitempty"`
	MemoryFree      int64  `json:"memory_free,omitempty"`
}

// ComputeMode tells how many programs may use a GPU at the same time. It is empty if it is
// not known.
type ComputeMode string

// The compute modes, in nvidia-smi's words.
const (
	ComputeDefault          ComputeMode = "default"
	ComputeExclusiveThread  ComputeMode = "exclusive-thread"
	ComputeExclusiveProcess ComputeMode = "exclusive-process"
	ComputeProhibited       ComputeMode = "prohibited"
)

// Process is a program that uses a GPU.
type Process struct {
	PID    int    `json:"pid"`
	User   string `json:"user,omitempty"` // name, or number where it has none; empty when not known
	Name   string `json:"name,omitempty"`
	Type   string `json:"type,omitempty"`   // as in nvidia-smi: C computes, G draws, C+G does both
	Memory int64  `json:"memory,omitempty"` // bytes; 0 is not known
	// GPUInstance and ComputeInstance identify the MIG device that the process uses; nil if
	// there is none or it is not known.
	GPUInstance     *int `json:"gpu_instance,omitempty"`
	ComputeInstance *int `json:"compute_instance,omitempty"`
}

// ECC counts memory errors: those since the driver was loaded or the GPU was reset, and
// those in the whole life of the GPU.
type ECC struct {
	Enabled                bool  `json:"enabled,omitempty"`
	Corrected              int64 `json:"corrected,omitempty"`
	Uncorrected            int64 `json:"uncorrected,omitempty"`
	AggregateCorrected     int64 `json:"aggregate_corrected,omitempty"`
	AggregateUncorrected   int64 `json:"aggregate_uncorrected,omitempty"`
	SRAMThresholdsExceeded bool  `json:"sram_thresholds_exceeded,omitempty"` // NVIDIA replaces such a GPU
}

// RetiredPages counts pages of memory that GPUs before Ampere no longer use.
type RetiredPages struct {
	SingleBit int  `json:"single_bit,omitempty"`
	DoubleBit int  `json:"double_bit,omitempty"`
	Pending   bool `json:"pending,omitempty"` // some are in use until the next reset
}

// RemappedRows counts rows of memory that GPUs since Ampere have replaced.
type RemappedRows struct {
	Correctable   int  `json:"correctable,omitempty"`
	Uncorrectable int  `json:"uncorrectable,omitempty"`
	Pending       bool `json:"pending,omitempty"` // some are in use until the next reset
	Failure       bool `json:"failure,omitempty"` // no spare row was left for one
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events that NVML reports, and three that Watch makes: EventAlive says
// that the driver still answers, EventProcess that a process computes on a GPU, and
// EventLooked that there has been an EventProcess for each process on a watched GPU.
const (
	EventXID       EventKind = "xid"
	EventECCSingle EventKind = "ecc-single"
	EventECCDouble EventKind = "ecc-double"
	EventAlive     EventKind = "alive"
	EventProcess   EventKind = "process"
	EventLooked    EventKind = "looked"
)

// Event is something that happened to a GPU.
type Event struct {
	Time time.Time `json:"time"`
	Kind EventKind `json:"kind"`
	UUID string    `json:"uuid,omitempty"`
	PCI  string    `json:"pci,omitempty"`
	XID  int       `json:"xid,omitempty"`
	PID  int       `json:"pid,omitempty"` // of EventProcess
	Text string    `json:"text,omitempty"`
}

// lacks is in the Errors of what the GPU or the driver does not have.
const lacks = "not supported"

// Lacks reports whether why, a reason from Errors, says only that the GPU or the driver
// does not have the thing. Old and small GPUs often lack some.
func Lacks(why string) bool {
	for line := range strings.Lines(strings.ToLower(why)) {
		if !strings.Contains(line, lacks) {
			return false
		}
	}
	return true
}

var busID = regexp.MustCompile(`^([0-9a-fA-F]{1,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$`)

// BusID returns a PCI bus ID as Linux writes it, 0000:3b:00.0. The driver writes
// 00000000:3B:00.0.
func BusID(text string) (string, error) {
	m := busID.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%q is no PCI bus id, as in 0000:3b:00.0", text)
	}
	domain, err := strconv.ParseUint(m[1], 16, 32)
	if err != nil {
		return "", fmt.Errorf("%q is no PCI bus id: %w", text, err)
	}
	return fmt.Sprintf("%04x:%s:%s.%s", domain, strings.ToLower(m[2]), strings.ToLower(m[3]), m[4]), nil
}

// Check returns an error if the sizes of Links or NICs do not match the Devices.
func (r Report) Check() error {
	n := len(r.Devices)
	if r.Links != nil && len(r.Links) != n {
		return fmt.Errorf("links of %d devices, where there are %d", len(r.Links), n)
	}
	for i, row := range r.Links {
		if len(row) != n {
			return fmt.Errorf("links of device %d to %d devices, where there are %d", i, len(row), n)
		}
	}
	for _, nic := range r.NICs {
		if nic.Links != nil && len(nic.Links) != n {
			return fmt.Errorf("links of NIC %q to %d devices, where there are %d", nic.Name, len(nic.Links), n)
		}
	}
	return nil
}
