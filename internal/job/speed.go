package job

import "time"

// HealthMode says whether the preflight measures how fast the hosts are.
type HealthMode string

// The values of HealthMode.
const (
	HealthOff   HealthMode = "off"
	HealthQuick HealthMode = "quick" // the measurements take at most HealthLimit
)

// HealthModes lists every HealthMode.
func HealthModes() []HealthMode { return []HealthMode{HealthOff, HealthQuick} }

// HealthLimit is how long all measurements together may take on the hosts of a gang.
const HealthLimit = 20 * time.Second

// SpeedKind says what a Speed measures. For each kind, a greater value is better.
type SpeedKind string

// The kinds of speeds, with their units.
const (
	SpeedCPU        SpeedKind = "cpu"             // of a core: turns of a loop in a second of CPU time
	SpeedMemory     SpeedKind = "memory"          // of a NUMA node: bytes that one core copies in a second
	SpeedCheckpoint SpeedKind = "checkpoint-disk" // of the checkpoint directory: bytes written and synced in a second
	SpeedLog        SpeedKind = "log-disk"        // of the directory of the logs: bytes written and synced in a second
	SpeedMatmul     SpeedKind = "gpu-matmul"      // of a GPU: floating point operations in a second
	SpeedGPUCopy    SpeedKind = "gpu-copy"        // of a GPU: bytes that the GPU copies in its own memory in a second
	SpeedUpload     SpeedKind = "gpu-upload"      // of a GPU: bytes copied from the host's memory to the GPU in a second
	SpeedLink       SpeedKind = "link"            // to another host: bytes sent in a second over one TCP connection
	SpeedTrips      SpeedKind = "round-trips"     // to another host: round trips of a small message in a second
)

// SpeedKinds lists every SpeedKind.
func SpeedKinds() []SpeedKind {
	return []SpeedKind{SpeedCPU, SpeedMemory, SpeedCheckpoint, SpeedLog, SpeedMatmul, SpeedGPUCopy, SpeedUpload, SpeedLink, SpeedTrips}
}

// OfGPU reports whether the kind is a speed of GPUs.
func (k SpeedKind) OfGPU() bool { return k == SpeedMatmul || k == SpeedGPUCopy || k == SpeedUpload }

// OfLink reports whether the kind is a speed of links between hosts.
func (k SpeedKind) OfLink() bool { return k == SpeedLink || k == SpeedTrips }

// Speed is how fast something of a host was when it was measured.
type Speed struct {
	Host string    `json:"host"`
	Kind SpeedKind `json:"kind"`
	// Of names the measured part of the host: "core 3", "NUMA node 0", "GPU 2", a path, or the other host of a
	// link.
	Of string `json:"of,omitempty"`
	// Model is the model of a GPU, or the type of the file system of a directory. gangrun compares a Speed only
	// with Speeds of the same Model.
	Model string `json:"model,omitempty"`
	// Value is the speed in the unit of Kind. It is 0 if the speed could not be measured; Error then says why.
	Value float64 `json:"value"`
	Error string  `json:"error,omitempty"`
}

// Measure asks a host to measure its own Speeds.
type Measure struct {
	Kinds []SpeedKind `json:"kinds"`
	// CheckpointDir and LogDir are the directories whose disks are measured; empty means none. LogDir is the
	// directory of the logs on the controller's machine. Agents on other machines measure the directory to
	// which they write logs.
	CheckpointDir string `json:"checkpoint_dir,omitempty"`
	LogDir        string `json:"log_dir,omitempty"`
	// Python is the path of the interpreter that measures GPUs. If it is empty, the host looks
	// for python3. Env is the environment that a rank would get, as NAME=VALUE.
	Python string   `json:"python,omitempty"`
	Env    []string `json:"env,omitempty"`
}
