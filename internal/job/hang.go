package job

import "time"

// HangReport is the finding that a gang makes no progress any more.
type HangReport struct {
	Since time.Time `json:"since"` // the last progress
	// Limit is the time without progress after which gangrun decided that the gang hangs.
	Limit Duration `json:"limit"`
	// Stage is the stage of the job in which the gang hangs.
	Stage HangStage `json:"stage"`
	// Signs are the signs of life that the gang showed before Since, but not after it.
	Signs []LifeSign `json:"signs"`
	// Ranks are the ranks that probably hold up the others; empty if no rank stands out. Why says how they
	// differ from the others. Confidence, from 0 to 1, is how sure gangrun is that they hold up the others.
	Ranks      []int   `json:"ranks"`
	Why        string  `json:"why"`
	Confidence float64 `json:"confidence"`
	// Groups are groups of ranks that are at the same place in the program. It is set after the stacks of the
	// ranks have been collected.
	Groups []StackGroup `json:"groups,omitempty"`
	// Collectives are the collectives in which ranks wait, according to PyTorch's flight recorders.
	Collectives []CollectiveProblem `json:"collectives,omitempty"`
	// Raised are the ranks whose last output is an exception of Python.
	Raised []int `json:"raised,omitempty"`
	// Unread are the ranks that are Python programs, but whose stacks have no Python functions.
	Unread []int `json:"unread,omitempty"`
	// Text says in a sentence what is missing, since when, and who holds up the gang.
	Text string `json:"text"`
	// Step is the step at which the gang stands still; -1 if none was seen.
	Step int64 `json:"step"`
}

// HangStage is a stage of a job. The limit on the time without progress depends on the stage.
type HangStage string

// The stages of a job.
const (
	HangStart  HangStage = "start"  // the job does not report its progress regularly yet
	HangInit   HangStage = "init"   // ranks wait in MPI_Init for others
	HangStep   HangStage = "step"   // the job has reported its progress by steps or heartbeats
	HangSilent HangStage = "silent" // the job has reported its progress by output alone
	HangFinal  HangStage = "final"  // some ranks have ended
)

// LifeSign is a kind of sign of life: of what shows that a gang still does something.
type LifeSign string

// The signs of life.
const (
	SignSteps  LifeSign = "steps"
	SignBeats  LifeSign = "heartbeats"
	SignOutput LifeSign = "output"
	SignIO     LifeSign = "io"     // bytes read and written
	SignFaults LifeSign = "faults" // page faults: the programs use new memory
	SignCPU    LifeSign = "cpu"
	SignGPU    LifeSign = "gpu"
)

// StragglerReport is the finding that a rank or a host is persistently slower than its peers, or that it is as
// fast as its peers again.
type StragglerReport struct {
	Rank int    `json:"rank"` // -1 for a host
	Host string `json:"host"`
	// Speed is the speed of the rank or host, divided by the median speed of its peers: 0.7 is 30 % slower.
	// Speeds are measured in steps per second. If these show no difference, the speed is the share of the time
	// in which the rank or host was not held up.
	Speed float64 `json:"speed"`
	// Over is true if the rank or host is as fast as its peers again.
	Over bool `json:"over,omitempty"`
	// Reason is what probably slows the rank or host down. Text says that in words.
	Reason StragglerReason `json:"reason"`
	Text   string          `json:"text"`
}

// StragglerReason is what probably slows a rank down.
type StragglerReason string

// The reasons of stragglers.
const (
	SlowUnknown  StragglerReason = "unknown"
	SlowWork     StragglerReason = "more-work"   // it is busy while its peers wait for it
	SlowQuota    StragglerReason = "cpu-quota"   // a limit of its cgroup holds it up
	SlowShared   StragglerReason = "cpu-shared"  // other processes use its cores
	SlowCores    StragglerReason = "fewer-cores" // it may use fewer cores than its peers
	SlowDisk     StragglerReason = "slow-disk"
	SlowNetwork  StragglerReason = "slow-network"
	SlowThrottle StragglerReason = "gpu-throttled"
	SlowMemory   StragglerReason = "memory" // its host reclaims memory, or swaps
)
