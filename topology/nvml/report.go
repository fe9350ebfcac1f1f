// Package nvml defines the report about the GPUs of a host that gangrun-nvml prints as JSON. It also makes that
// report from what the NVIDIA driver says, and fills a job.Host from the report.
package nvml

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Report is what gangrun-nvml or nvidia-smi has found on one host. gangrun-nvml prints a Report as JSON on its
// standard output and exits with 0, even if there is no driver.
type Report struct {
	Source string `json:"source"` // the program from which the report comes: gangrun-nvml or nvidia-smi
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"` // the newest version of CUDA that the driver supports
	// If NVML could not be used at all, Failed is its error. NoDriver is true if the reason is that the host
	// has no driver.
	Failed   string   `json:"failed,omitempty"`
	NoDriver bool     `json:"no_driver,omitempty"`
	Devices  []Device `json:"devices"`
	// Links[i][j] is the link between Devices i and j. Links is nil if no link is known. It is
	// symmetric, and its diagonal is empty.
	Links [][]job.Link `json:"links,omitempty"`
	// NICs are the NICs that the driver knows. Each has Links to the Devices, in their order.
	NICs   []job.NIC `json:"nics,omitempty"`
	Events []Event   `json:"events,omitempty"`
	// Errors has the reasons why fields could not be read. The keys are the JSON names of the fields. Lacks
	// tells whether a reason is only that the GPU or the driver does not have the value.
	Errors map[string]string `json:"errors,omitempty"`
}

// Device is one GPU. A field that could not be read is zero, and Errors has the reason. A field
// that is zero and not in Errors is really zero.
type Device struct {
	UUID  string `json:"uuid,omitempty"`
	Index int    `json:"index"` // NVML's index; GPUs are in the order of their PCI bus IDs
	PCI   string `json:"pci,omitempty"`
	Name  string `json:"name,omitempty"`
	CPUs  string `json:"cpus,omitempty"` // the CPUs close to it, as in 0-15,32-47
	NUMA  string `json:"numa,omitempty"` // number of the NUMA node close to it, or of the first of these nodes

	MemoryTotal int64 `json:"memory_total,omitempty"` // in bytes, as are the next two fields
	MemoryUsed  int64 `json:"memory_used,omitempty"`  // without the memory that the driver reserves for itself, if the driver reports that separately
	MemoryFree  int64 `json:"memory_free,omitempty"`

	MIG         bool        `json:"mig,omitempty"` // MIG mode is on
	Instances   []Instance  `json:"instances,omitempty"`
	ComputeMode ComputeMode `json:"compute_mode,omitempty"`
	Processes   []Process   `json:"processes,omitempty"`

	UtilisationGPU    int `json:"utilisation_gpu,omitempty"`    // percent of the last sample period in which a kernel ran
	UtilisationMemory int `json:"utilisation_memory,omitempty"` // percent of that period in which the memory of the GPU was used

	ECC      ECC          `json:"ecc,omitzero"`
	Retired  RetiredPages `json:"retired_pages,omitzero"`
	Remapped RemappedRows `json:"remapped_rows,omitzero"`
	// Throttle has the reasons why the clocks are not at their maximum, in nvidia-smi's words:
	// gpu_idle, sw_power_cap, hw_thermal_slowdown and so on.
	Throttle []string `json:"throttle,omitempty"`
	// Recovery is what must be done, according to the driver, before the GPU can be used again,
	// as in "reset" or "reboot".
	Recovery string `json:"recovery,omitempty"`
	// Lost is the driver's error if it can no longer reach the GPU. In that case, only UUID,
	// Index and PCI may be known.
	Lost   string            `json:"lost,omitempty"`
	Errors map[string]string `json:"errors,omitempty"`
}

// Instance is one MIG device of a GPU.
type Instance struct {
	// UUID is the driver's UUID. For old drivers it is another name that CUDA_VISIBLE_DEVICES
	// accepts.
	UUID            string `json:"uuid"`
	Index           int    `json:"index"` // number among the MIG devices of its GPU
	GPUInstance     int    `json:"gpu_instance"`
	ComputeInstance int    `json:"compute_instance"`
	Profile         string `json:"profile,omitempty"`      // as in 3g.20gb
	MemoryTotal     int64  `json:"memory_total,omitempty"` // in bytes, as are the next two fields
	MemoryUsed      int64  `json:"memory_used,omitempty"`
	MemoryFree      int64  `json:"memory_free,omitempty"`
}

// ComputeMode says how many programs may use a GPU at the same time. It is empty if unknown.
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
	User   string `json:"user,omitempty"` // name, or numeric ID if there is no name; empty if unknown
	Name   string `json:"name,omitempty"`
	Type   string `json:"type,omitempty"`   // as in nvidia-smi: C for compute, G for graphics, C+G for both
	Memory int64  `json:"memory,omitempty"` // bytes; 0 means unknown
	// GPUInstance and ComputeInstance identify the MIG device that the process uses. They are nil if the
	// process uses no MIG device, or if that is unknown.
	GPUInstance     *int `json:"gpu_instance,omitempty"`
	ComputeInstance *int `json:"compute_instance,omitempty"`
}

// ECC counts memory errors. Corrected and Uncorrected count errors since the driver was last loaded or the GPU
// was last reset. AggregateCorrected and AggregateUncorrected count errors in the whole life of the GPU.
type ECC struct {
	Enabled                bool  `json:"enabled,omitempty"`
	Corrected              int64 `json:"corrected,omitempty"`
	Uncorrected            int64 `json:"uncorrected,omitempty"`
	AggregateCorrected     int64 `json:"aggregate_corrected,omitempty"`
	AggregateUncorrected   int64 `json:"aggregate_uncorrected,omitempty"`
	SRAMThresholdsExceeded bool  `json:"sram_thresholds_exceeded,omitempty"` // if true, NVIDIA replaces the GPU
}

// RetiredPages counts the pages of its memory that a GPU no longer uses. GPUs before Ampere
// retire pages.
type RetiredPages struct {
	SingleBit int  `json:"single_bit,omitempty"`
	DoubleBit int  `json:"double_bit,omitempty"`
	Pending   bool `json:"pending,omitempty"` // some are still in use, until the next reset
}

// RemappedRows counts the rows of its memory that a GPU has replaced by spare rows. GPUs since
// Ampere remap rows.
type RemappedRows struct {
	Correctable   int  `json:"correctable,omitempty"`
	Uncorrectable int  `json:"uncorrectable,omitempty"`
	Pending       bool `json:"pending,omitempty"` // some are still in use, until the next reset
	Failure       bool `json:"failure,omitempty"` // a row could not be remapped, because no spare row was left
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events. NVML reports the first three; Watch adds the others. EventAlive says that the driver
// still answers. EventProcess says that a process computes on a GPU. EventLooked says that Watch has now
// reported an EventProcess for each process on the watched GPUs. An EventSample has a Sample. EventLost says
// that the driver can no longer reach a GPU.
const (
	EventXID       EventKind = "xid"
	EventECCSingle EventKind = "ecc-single"
	EventECCDouble EventKind = "ecc-double"
	EventAlive     EventKind = "alive"
	EventProcess   EventKind = "process"
	EventLooked    EventKind = "looked"
	EventSample    EventKind = "sample"
	EventLost      EventKind = "lost"
)

// Event is something that happened on a GPU.
type Event struct {
	Time time.Time `json:"time"`
	Kind EventKind `json:"kind"`
	UUID string    `json:"uuid,omitempty"`
	PCI  string    `json:"pci,omitempty"`
	XID  int       `json:"xid,omitempty"`
	PID  int       `json:"pid,omitempty"` // the process of an EventProcess
	Text string    `json:"text,omitempty"`
	// Sample is the sample of an EventSample; nil in other events.
	Sample *Sample `json:"sample,omitempty"`
	// Origin says where the process of an EventProcess comes from; nil if that is not known.
	Origin *Origin `json:"origin,omitempty"`
}

// Origin is where a process comes from.
type Origin struct {
	Name string `json:"name"` // name of its program, as the kernel has it
	UID  int    `json:"uid"`  // ID of its user; -1 if it is not known
	// Ancestors has the PIDs of its parent, of its parent's parent, and so on. Their number is limited.
	Ancestors []int `json:"ancestors"`
}

// lacks is in the Errors of a value that the GPU or the driver does not have.
const lacks = "not supported"

// Lacks reports whether a reason from Errors says only that the GPU or the driver does not have the
// value. Old and small GPUs often lack some values.
func Lacks(reason string) bool {
	for line := range strings.Lines(strings.ToLower(reason)) {
		if !strings.Contains(line, lacks) {
			return false
		}
	}
	return true
}

var busID = regexp.MustCompile(`^([0-9a-fA-F]{1,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$`)

// BusID returns a PCI bus ID in the form that Linux uses, as in 0000:3b:00.0. The driver's form
// is 00000000:3B:00.0.
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

// Check returns an error if the sizes of Links or of the NICs' Links do not match the number of
// Devices.
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
