package nvml

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Library is the part of NVML that Read and Watch need. Its errors have the driver's texts.
// They wrap a Fault if the kind of the error matters.
type Library interface {
	// Init initialises the library. It must succeed before any other call.
	Init() error
	Ask(q Query) (Answer, error)
	// GPU returns the GPU with the given index. The index must be less than the answer to
	// QueryCount.
	GPU(index int) (GPU, error)
	Events() (EventSet, error)
}

// GPU is a GPU, or a MIG device of a GPU. Two values for the same GPU are equal.
type GPU interface {
	// Ask returns the answer to q. n is the number of the NVLink if q is about an NVLink, and
	// otherwise 0.
	Ask(q Query, n int) (Answer, error)
	// Processes returns the PIDs, memory and MIG IDs of the processes that use the GPU. q is QueryCompute,
	// QueryGraphics or QueryMPS. Processes returns only the processes that use the GPU in that way.
	Processes(q Query) ([]Process, error)
	// Instance returns the MIG device with the given index. The index must be less than the
	// answer to QueryInstances.
	Instance(index int) (GPU, error)
	// Ancestor returns the kind of the PCIe path from this GPU to the GPU other.
	Ancestor(other GPU) (job.Link, error)
}

// EventSet waits for events of GPUs.
type EventSet interface {
	Add(g GPU) error
	// Wait returns the next event, or ErrTimeout after limit.
	Wait(limit time.Duration) (Occurrence, error)
	Free() error
}

// Occurrence is one event of an EventSet.
type Occurrence struct {
	GPU  GPU
	Kind EventKind
	Data uint64 // for EventXID, the number of the XID
	// GPUInstance and ComputeInstance identify the MIG device of the event. They are nil if the event is not
	// about a MIG device.
	GPUInstance, ComputeInstance *int
}

// Answer is the answer to a Query. The comment of each Query says what the answer has. The values are in
// Numbers, in the order of the comment, unless the comment names Text or Mask.
type Answer struct {
	Text    string
	Numbers [4]uint64
	Mask    []uint64 // a set of numbers: 64i+b is in it if bit b of word i is 1
}

// Query is a question to a Library or a GPU.
type Query int

// The queries to a Library.
const (
	QueryDriver Query = iota + 1 // Text
	QueryCUDA                    // 1000 times the major version plus 10 times the minor version
	QueryCount                   // number of GPUs, including those that may not be used
)

// The queries to a GPU. The queries for the UUID, the name, the memory and the processes can also be put to a
// MIG device.
const (
	QueryUUID        Query = iota + 100 // Text
	QueryName                           // Text; the name of a MIG device ends with "MIG" and its profile
	QueryPCI                            // Text: the PCI bus ID as the driver writes it
	QueryCPUs                           // Mask: the CPUs close to the GPU
	QueryNUMA                           // Mask: the NUMA nodes close to the GPU
	QueryMemory                         // bytes: total, used, free
	QueryComputeMode                    // 0 default, 1 exclusive-thread, 2 prohibited, 3 exclusive-process
	QueryUtilisation                    // utilisation in percent: of the GPU, of its memory
	QueryECCMode                        // 1 means on
	QueryECC                            // errors: corrected, uncorrected; then both in the GPU's whole life
	QuerySRAM                           // 1 if thresholds are exceeded
	QueryRetired                        // pages retired for single-bit errors and for double-bit errors; then 1 if some are pending
	QueryRemapped                       // rows remapped after correctable and after uncorrectable errors; then 1 if some are pending; then 1 if remapping failed
	QueryThrottle                       // bits, whose names are in Device.Throttle
	QueryRecovery                       // a number, whose name is in Device.Recovery
	QueryMIG                            // 1 means on
	QueryPower                          // milliwatts
	QueryClock                          // MHz of the streaming multiprocessors
	QueryTemperature                    // degrees Celsius
	QueryPCILink                        // PCIe link: generation, width; the largest generation, width that GPU and slot can have
	QueryLinkErrors                     // errors of the NVLink: replays, recoveries, CRC of flits, CRC of data
	QueryInstances                      // maximum number of MIG devices
	QueryLink                           // 1 if the NVLink is active
	QueryPeerKind                       // the kind of the device at the other end of the NVLink: PeerGPU and so on
	QueryPeer                           // Text: the PCI bus ID of the device at the other end
	QueryCompute                        // only for Processes, as are the next two
	QueryGraphics
	QueryMPS
	QueryGPUInstance     // the ID of the GPU instance of a MIG device
	QueryComputeInstance // the ID of the compute instance of a MIG device
)

// What is at the other end of an NVLink.
const (
	PeerGPU uint64 = iota
	PeerNPU
	PeerSwitch
	PeerUnknown
)

// Fault is the kind of an error of a Library.
type Fault string

// The kinds of errors that matter.
const (
	ErrNoDriver     Fault = "no NVIDIA driver"
	ErrNotSupported Fault = "not supported"
	ErrNoPermission Fault = "no permission"
	ErrNotFound     Fault = "not found" // also for an index that is too large
	ErrLost         Fault = "GPU is lost"
	ErrReset        Fault = "GPU requires reset"
	ErrTimeout      Fault = "timeout"
)

func (f Fault) Error() string { return string(f) }
