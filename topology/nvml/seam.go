package nvml

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Library is the part of NVML that a Report needs. Its errors have the driver's texts, and
// wrap a Fault if the kind of the error matters.
type Library interface {
	// Init initialises the library. It must succeed before any other call.
	Init() error
	Ask(q Query) (Answer, error)
	// GPU returns the GPU with an index, which must be less than the answer to QueryCount.
	GPU(index int) (GPU, error)
	Events() (EventSet, error)
}

// GPU is a GPU or a MIG device of one. Two values for the same GPU are equal.
type GPU interface {
	// Ask returns the answer to q. n is the number of the NVLink that q is about, otherwise
	// 0.
	Ask(q Query, n int) (Answer, error)
	// Processes returns the PIDs, memory and MIG ids of what uses the GPU as
	// QueryCompute, QueryGraphics or QueryMPS.
	Processes(q Query) ([]Process, error)
	// Instance returns the MIG device with an index, which must be less than the answer to
	// QueryInstances.
	Instance(index int) (GPU, error)
	// Ancestor returns the kind of the PCIe path to another GPU.
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
	Data uint64 // of EventXID: its number
	// GPUInstance and ComputeInstance identify the MIG device of the event; nil if there is
	// none.
	GPUInstance, ComputeInstance *int
}

// Answer is the answer to a Query. The comment of each Query tells which fields it sets.
type Answer struct {
	Text    string
	Numbers [4]uint64
	Mask    []uint64 // a set: number 64i+b is in it where bit b of word i is
}

// Query is a question to a Library or a GPU.
type Query int

// What can be asked of a Library.
const (
	QueryDriver Query = iota + 1 // Text
	QueryCUDA                    // 1000 times the major version, and 10 times the minor
	QueryCount                   // of GPUs, with those that may not be used
)

// What can be asked of a GPU. UUID, name, memory and processes can be asked of a
// MIG device too.
const (
	QueryUUID        Query = iota + 100 // Text, as the next two
	QueryName                           // of a MIG device: ends with "MIG" and its profile
	QueryPCI                            // as the driver writes it
	QueryCPUs                           // Mask, as the next: the CPUs close to it
	QueryNUMA                           // the NUMA nodes close to it
	QueryMemory                         // bytes: total, used, free
	QueryComputeMode                    // 0 default, 1 exclusive-thread, 2 prohibited, 3 exclusive-process
	QueryUtilisation                    // percent: of the GPU, of its memory
	QueryECCMode                        // 1 is on
	QueryECC                            // corrected, uncorrected, the same two of its whole life
	QuerySRAM                           // 1 where thresholds are exceeded
	QueryRetired                        // pages: for single bit errors, for double bit errors; 1 where some are pending
	QueryRemapped                       // rows: after correctable errors, after uncorrectable ones; 1 where some are pending; 1 where that failed
	QueryThrottle                       // bits; Device.Throttle has their names
	QueryRecovery                       // a number; Device.Recovery has its name
	QueryMIG                            // 1 is on
	QueryInstances                      // how many MIG devices there can be
	QueryLink                           // 1 where the NVLink is active
	QueryPeerKind                       // Peer...: what is at its other end
	QueryPeer                           // Text: the PCI bus id of what is at its other end
	QueryCompute                        // of Processes, as the next two
	QueryGraphics
	QueryMPS
	QueryGPUInstance     // of a MIG device: its id
	QueryComputeInstance // of a MIG device: its id
)

// What is at the other end of an NVLink.
const (
	PeerGPU uint64 = iota
	PeerNPU
	PeerSwitch
	PeerUnknown
)

// Fault is the kind of an error of a Library, if it matters.
type Fault string

// What can matter of an error.
const (
	ErrNoDriver     Fault = "no NVIDIA driver"
	ErrNotSupported Fault = "not supported"
	ErrNoPermission Fault = "no permission"
	ErrNotFound     Fault = "not found" // or an index past the last
	ErrLost         Fault = "GPU is lost"
	ErrReset        Fault = "GPU requires reset"
	ErrTimeout      Fault = "timeout"
)

func (f Fault) Error() string { return string(f) }
