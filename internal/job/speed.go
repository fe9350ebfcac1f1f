package job

import "time"

// HealthMode says whether the preflight measures how fast the hosts are.
type HealthMode string

// The values of HealthMode.
const (
	HealthOff   HealthMode = "off"
	HealthQuick HealthMode = "quick" // measure for HealthLimit at most
)

// HealthModes lists every HealthMode.
func HealthModes() []HealthMode { return []HealthMode{HealthOff, HealthQuick} }

// HealthLimit is how long the hosts of a gang may take for all their measurements.
const HealthLimit = 20 * time.Second

// SpeedKind is what a Speed is of. For each kind, the greater value is the better one.
type SpeedKind string

// The kinds of speeds, with their units.
const (
	SpeedCPU        SpeedKind = "cpu"             // of a core: turns of a loop in a second of its time
	SpeedMemory     SpeedKind = "memory"          // of a NUMA node: bytes that one core copies in a second
	SpeedCheckpoint SpeedKind = "checkpoint-disk" // of the checkpoint directory: bytes written and synced in a second
	SpeedLog        SpeedKind = "log-disk"        // of the directory of the logs: the same
	SpeedMatmul     SpeedKind = "gpu-matmul"      // of a GPU: floating point operations in a second
	SpeedGPUCopy    SpeedKind = "gpu-copy"        // of a GPU: bytes that it copies in its memory in a second
	SpeedUpload     SpeedKind = "gpu-upload"      // of a GPU: bytes that it gets from the host's memory in a second
	SpeedLink       SpeedKind = "link"            // to another host: bytes in a second over one TCP connection
	SpeedTrips      SpeedKind = "round-trips"     // to another host: small messages, there and back, in a second
)

// SpeedKinds lists every SpeedKind.
func SpeedKinds() []SpeedKind {
	return []SpeedKind{SpeedCPU, SpeedMemory, SpeedCheckpoint, SpeedLog, SpeedMatmul, SpeedGPUCopy, SpeedUpload, SpeedLink, SpeedTrips}
}

// OfGPU reports whether the kind is of GPUs, and OfLink whether it is of links between hosts.
func (k SpeedKind) OfGPU() bool  { return k == SpeedMatmul || k == SpeedGPUCopy || k == SpeedUpload }
func (k SpeedKind) OfLink() bool { return k == SpeedLink || k == SpeedTrips }

// Speed is how fast something of a host was when it was measured.
type Speed struct {
	Host string    `json:"host"`
	Kind SpeedKind `json:"kind"`
	// Of names the part: "core 3", "NUMA node 0", "GPU 2", a path, or the other host of a link.
	Of string `json:"of,omitempty"`
	// Model is the model of a GPU, or the type of the file system of a directory. Speeds are
	// compared with those of the same model.
	Model string `json:"model,omitempty"`
	// Value is in the unit of the Kind; 0 if it could not be measured. Error says why not.
	Value float64 `json:"value"`
	Error string  `json:"error,omitempty"`
}

// Measure asks hosts for Speeds of themselves.
type Measure struct {
	Kinds []SpeedKind `json:"kinds"`
	// CheckpointDir and LogDir are the directories whose disks are measured; empty means none.
	// LogDir is that of the controller's machine. On other machines, the logs are in a directory
	// of the agent.
	CheckpointDir string `json:"checkpoint_dir,omitempty"`
	LogDir        string `json:"log_dir,omitempty"`
	// Python is the path of the interpreter that measures GPUs. If it is empty, the host looks
	// for python3. Env is the environment that a rank would get, as NAME=VALUE.
	Python string   `json:"python,omitempty"`
	Env    []string `json:"env,omitempty"`
}
