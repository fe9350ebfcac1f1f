package job

import "time"

// Pulse is what the agent of a host has seen of one rank at one moment. The counters cover all processes of the
// rank, including those that have ended. They never decrease.
type Pulse struct {
	Rank int `json:"rank"`
	// State is the state of the process that does the work. If the rank is a shell, or another wrapper that
	// waits for a single child, that process is the child.
	State ProcessState `json:"state"`
	// PID is the process ID of the process that does the work.
	PID int `json:"pid"`
	// Processes is how many processes the rank has. Stuck is how many of them are in an uninterruptible sleep
	// (ProcessDisk). Zombies is how many of them have ended, but their parents have not waited for them yet.
	Processes int      `json:"processes"`
	Stuck     int      `json:"stuck,omitempty"`
	Zombies   int      `json:"zombies,omitempty"`
	CPU       Duration `json:"cpu"` // user and system time
	RSS       int64    `json:"rss"` // resident memory now, in bytes
	// Read and Written are how many bytes the rank has read and written by system calls, from and to all kinds
	// of files.
	Read    int64 `json:"read"`
	Written int64 `json:"written"`
	Faults  int64 `json:"faults"` // page faults, minor and major
	Output  int64 `json:"output"` // bytes printed to standard output and standard error
	// Beats is how many heartbeats the program has given (GANGRUN_HEARTBEAT, GANGRUN_PROGRESS_FD).
	Beats int64 `json:"beats,omitempty"`
	// Progress is the latest progress that the rank has reported; nil if it has never reported progress. Moves
	// is how often the step or epoch of the rank has changed.
	Progress *Progress `json:"progress,omitempty"`
	Moves    int64     `json:"moves,omitempty"`
	// Raised is true if the last output of the rank is an exception of Python.
	Raised bool `json:"raised,omitempty"`
	// Phase says where the rank is in its MPI library, as far as its agent knows.
	Phase RankPhase `json:"phase,omitempty"`
	// Stdin is true if the rank waits for its standard input.
	Stdin bool `json:"stdin,omitempty"`
	// GPU is what the driver says about the rank's GPUs; nil if the rank has no GPU.
	GPU *GPUPulse `json:"gpu_pulse,omitempty"`
	// Delays says what has held up the rank's processes.
	Delays Delays `json:"delays"`
}

// Delays says what has held up the processes of a rank, and for how long. Ran, Waited, Throttled and Sending
// never decrease.
type Delays struct {
	// Ran is how long threads of the rank have run, and Waited how long they have waited for a CPU although
	// they could run (/proc/PID/schedstat). Waited includes the time of Throttled.
	Ran    Duration `json:"ran"`
	Waited Duration `json:"waited"`
	// Throttled is how long limits of the rank's control groups (cpu.max) have held up its processes.
	Throttled Duration `json:"throttled,omitempty"`
	// Cores is how many CPUs the rank may use; 0 if that is not known.
	Cores int `json:"cores,omitempty"`
	// File is true if the process that does the work (see Pulse.State) now waits for a file system or a disk.
	File bool `json:"file,omitempty"`
	// The following fields are about the TCP connections of the rank to other hosts. For each connection, the kernel
	// measures how long sent data was not acknowledged yet. For the interval before each pulse, the agent chooses the
	// longest of these times among all connections. Sending is the sum of the chosen times of all pulses so far. Rate
	// is the rate of the fastest connection, in bytes a second. RTT is the shortest round-trip time. Rate and RTT are
	// 0 if nothing was sent lately.
	Sending Duration `json:"sending,omitempty"`
	Rate    int64    `json:"rate,omitempty"`
	RTT     Duration `json:"rtt,omitempty"`
}

// RankPhase is where a rank is in its MPI library.
type RankPhase string

// The phases of a rank.
const (
	PhaseUnknown RankPhase = ""        // it uses no MPI library, or the agent cannot tell
	PhaseInit    RankPhase = "init"    // in MPI_Init
	PhaseBarrier RankPhase = "barrier" // in a barrier of the process manager after MPI_Init, for instance in MPI_Finalize
	PhaseWorking RankPhase = "working" // between MPI_Init and MPI_Finalize
	PhaseLeft    RankPhase = "left"    // after MPI_Finalize
)

// GPUPulse is the load of the GPUs of one rank. Each value is the mean of all its GPUs.
type GPUPulse struct {
	Utilization int `json:"utilization"` // percent of the time in which a kernel ran
	Memory      int `json:"memory"`      // percent of the time in which device memory was read or written
	Power       int `json:"power"`       // watts
	SMClock     int `json:"sm_clock"`    // MHz
}

// Pulses are the pulses of the ranks of one host, taken at Time by the host's clock.
type Pulses struct {
	Host  string    `json:"host"`
	Time  time.Time `json:"time"`
	Ranks []Pulse   `json:"ranks"`
	// MemoryStall is the total time since boot in which every process of the host that had work to do was
	// waiting for memory ("full" in /proc/pressure/memory).
	MemoryStall Duration `json:"memory_stall,omitempty"`
	// Every is the time until the next pulses. Every is longer if taking the pulses costs more CPU time.
	Every Duration `json:"every"`
}
