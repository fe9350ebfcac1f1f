package job

import "slices"

// Category is the kind of a failure. Programs may rely on its values, such as "host-lost".
type Category string

// The categories. All categories of a group have the same Fault.
const (
	IncorrectInputs Category = "incorrect-inputs"
	SemanticError   Category = "semantic-error"
	SyntaxError     Category = "syntax-error"
	ImportError     Category = "import-error"
	PermissionError Category = "permission-error"
	Traceback       Category = "traceback"
	Assertion       Category = "assertion"
	CPUOOM          Category = "cpu-oom"
	GPUOOM          Category = "gpu-oom"
	ModelDiverged   Category = "model-diverged"
	OutputError     Category = "output-error"

	CoreDump            Category = "core-dump"
	InvalidMemoryAccess Category = "invalid-memory-access"
	Killed              Category = "killed"

	CUDAFailure       Category = "cuda-failure"
	CUDAInit          Category = "cuda-init"
	CUDAVersion       Category = "cuda-version"
	MissingLibrary    Category = "missing-library"
	MPIError          Category = "mpi-error"
	CollectiveTimeout Category = "collective-timeout"

	MPIRuntime      Category = "mpi-runtime"
	CheckpointError Category = "checkpoint-error"
	StorageError    Category = "storage-error"
	DiskFull        Category = "disk-full"
	GPUHardware     Category = "gpu-hardware"
	HostLost        Category = "host-lost"
	NetworkError    Category = "network-error"
	PortInUse       Category = "port-in-use"
	Preempted       Category = "preempted"
	LaunchError     Category = "launch-error"

	Hang         Category = "hang"
	Straggler    Category = "straggler"
	TimeLimit    Category = "time-limit"
	Cancelled    Category = "cancelled"
	StoppedEarly Category = "stopped-early"
	Unknown      Category = "unknown"
)

// Fault says whose fault a Category mostly is.
type Fault string

// The faults.
const (
	FaultUser           Fault = "user"
	FaultEither         Fault = "either"
	FaultEngine         Fault = "engine"
	FaultInfrastructure Fault = "infrastructure"
	FaultRun            Fault = "run"
)

// Action is what gangrun does after a failure.
type Action string

// The actions.
const (
	RetryNever     Action = "never"
	RetryOnce      Action = "once"
	RetryAgain     Action = "again"     // as long as retries are left, each time after a longer wait
	RetryElsewhere Action = "elsewhere" // without the host or GPU that caused the failure
)

// Actions lists every Action.
func Actions() []Action { return []Action{RetryNever, RetryOnce, RetryAgain, RetryElsewhere} }

type categoryFacts struct {
	category Category
	fault    Fault
	action   Action
	free     bool // a retry is not charged to the budget
}

var categories = []categoryFacts{
	{IncorrectInputs, FaultUser, RetryNever, false},
	{SemanticError, FaultUser, RetryNever, false},
	{SyntaxError, FaultUser, RetryNever, false},
	{ImportError, FaultUser, RetryNever, false},
	{PermissionError, FaultUser, RetryNever, false},
	{Traceback, FaultUser, RetryOnce, false},
	{Assertion, FaultUser, RetryNever, false},
	{CPUOOM, FaultUser, RetryNever, false},
	{GPUOOM, FaultUser, RetryNever, false},
	{ModelDiverged, FaultUser, RetryNever, false},
	{OutputError, FaultUser, RetryNever, false},
	{CoreDump, FaultEither, RetryOnce, false},
	{InvalidMemoryAccess, FaultEither, RetryOnce, false},
	{Killed, FaultEither, RetryOnce, false},
	{CUDAFailure, FaultEngine, RetryElsewhere, false},
	{CUDAInit, FaultEngine, RetryElsewhere, false},
	{CUDAVersion, FaultEngine, RetryNever, false},
	{MissingLibrary, FaultEngine, RetryNever, false},
	{MPIError, FaultEngine, RetryOnce, false},
	{CollectiveTimeout, FaultEngine, RetryAgain, false},
	{MPIRuntime, FaultInfrastructure, RetryAgain, false},
	{CheckpointError, FaultInfrastructure, RetryAgain, false},
	{StorageError, FaultInfrastructure, RetryAgain, false},
	{DiskFull, FaultInfrastructure, RetryNever, false},
	{GPUHardware, FaultInfrastructure, RetryElsewhere, false},
	{HostLost, FaultInfrastructure, RetryElsewhere, false},
	{NetworkError, FaultInfrastructure, RetryAgain, false},
	{PortInUse, FaultInfrastructure, RetryAgain, false},
	{Preempted, FaultInfrastructure, RetryAgain, true},
	{LaunchError, FaultInfrastructure, RetryNever, false},
	{Hang, FaultRun, RetryAgain, false},
	{Straggler, FaultRun, RetryNever, false},
	{TimeLimit, FaultRun, RetryNever, false},
	{Cancelled, FaultRun, RetryNever, false},
	{StoppedEarly, FaultRun, RetryNever, false},
	{Unknown, FaultRun, RetryOnce, false},
}

// Categories lists every Category, in the order of the documentation.
func Categories() []Category {
	all := make([]Category, len(categories))
	for i, f := range categories {
		all[i] = f.category
	}
	return all
}

func (c Category) facts() categoryFacts {
	i := slices.IndexFunc(categories, func(f categoryFacts) bool { return f.category == c })
	if i < 0 {
		return categoryFacts{Unknown, FaultRun, RetryOnce, false}
	}
	return categories[i]
}

// Fault returns whose fault a failure of this category mostly is.
func (c Category) Fault() Fault { return c.facts().fault }

// Action returns the category's default action.
func (c Category) Action() Action { return c.facts().action }

// Charged reports whether a retry after a failure of this category counts as one of the retries that the run
// may have.
func (c Category) Charged() bool { return !c.facts().free }
