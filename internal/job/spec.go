package job

import (
	"maps"
	"slices"
	"time"
)

// Spec is one training job as its user asked for it: the flags of "gangrun run" and the job file, merged, with
// defaults filled in. gangrun writes it to the run's directory as job.yaml, with the values of secrets replaced
// (see Redacted).
type Spec struct {
	Name    string   `json:"name,omitempty"`
	Command []string `json:"command"`
	// Ranks is the size of the gang, at least 1. If there is no room for so many ranks, the
	// gang may be smaller, but has at least MinRanks. If MinRanks is 0, the gang always has the
	// size Ranks.
	Ranks    int `json:"ranks"`
	MinRanks int `json:"min_ranks,omitempty"`
	// Loopback is the number of simulated hosts h1..hN on this machine. If it is 0, no hosts
	// are simulated.
	Loopback int `json:"loopback,omitempty"`
	// GPUs is how many GPUs each rank gets. -1 means one if the hosts have GPUs, and otherwise
	// none.
	GPUs int `json:"gpus_per_rank"`
	// GPUVisibility is which of the gang's GPUs each rank sees. Records of older versions of
	// gangrun leave it empty; it then means GPUVisibilityGang.
	GPUVisibility GPUVisibility `json:"gpu_visibility,omitempty"`
	// Hosts lists the hosts to use, as in h1,h2:4. Hostfile and Inventory are paths of files
	// that list hosts. At most one of the three is set. If none is set, the hosts are those of
	// the batch system's allocation, or this machine. With Loopback, gangrun simulates the
	// first hosts of the Inventory, with their GPUs.
	Hosts     string `json:"hosts,omitempty"`
	Hostfile  string `json:"hostfile,omitempty"`
	Inventory string `json:"inventory,omitempty"`
	// Network is the network over which ranks on several hosts communicate: a CIDR or the name
	// of an interface. If it is empty, gangrun chooses one.
	Network string `json:"network,omitempty"`
	// HostTimeout is how long a host may be silent before it counts as lost. OrphanGrace is how
	// long an agent on another host lets its ranks run after its last contact with the
	// controller.
	HostTimeout Duration `json:"host_timeout"`
	OrphanGrace Duration `json:"orphan_grace"`
	// Locality is the widest level over which the GPUs of the gang may be spread. Patience is
	// how long the run waits for GPUs of a closer level.
	Locality Locality `json:"locality"`
	Patience Patience `json:"patience"`
	// Env has environment variables for every rank. They take precedence over all variables that gangrun sets.
	Env map[string]string `json:"env,omitempty"`
	// Secret names the variables of Env whose values gangrun does not show anywhere. If gangrun inherits such a
	// variable from its own environment, it adds the variable to Env.
	Secret []string `json:"secret,omitempty"`
	// Workdir is the absolute directory in which every rank starts.
	Workdir string `json:"workdir"`
	// Image is the image in which the ranks run: a reference, as in "ubuntu:24.04", or the absolute
	// path of an archive or an OCI layout on the controller's machine. If it is empty, the ranks
	// run directly on the hosts, and Container is not used.
	Image     string    `json:"image,omitempty"`
	Container Container `json:"container,omitzero"`
	// Inputs are the paths of files and directories that every host must be able to read. Relative paths are
	// relative to Workdir.
	Inputs []string `json:"inputs,omitempty"`
	// CheckpointDir is absolute, or empty when the job writes no checkpoints.
	CheckpointDir string `json:"checkpoint_dir,omitempty"`
	// Resume makes the first attempt start from the newest good checkpoint.
	Resume bool `json:"resume,omitempty"`
	// RefuseKnown makes the preflight refuse a job that has failed before for a reason that a new start does
	// not remove, if the job has not changed since.
	RefuseKnown bool `json:"refuse_known,omitempty"`
	// Rules is the path of a file with further rules of diagnosis. If it is empty, only gangrun's own
	// rules are used.
	Rules string `json:"rules,omitempty"`
	// Progress is a regular expression that matches the job's progress lines, with groups named
	// step, total, epoch and loss. If it is empty, gangrun looks for the forms that it knows.
	Progress string `json:"progress,omitempty"`
	// Requeue is how often the batch job may be started, including its first start. As long as the batch job
	// was started less often, gangrun may requeue it. 0 means that gangrun never requeues it.
	Requeue int `json:"requeue,omitempty"`
	// Retries is how many restarts in a row the run may have without progress.
	Retries   int           `json:"retries"`
	Preflight PreflightMode `json:"preflight"`
	// Health says whether the preflight measures how fast the hosts are; empty means off.
	Health HealthMode `json:"health,omitempty"`
	Trial  Trial      `json:"trial"`
	// Policy replaces the default actions of some categories.
	Policy map[Category]Action `json:"policy,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL when the gang is ended.
	Grace Duration `json:"grace"`
	// Timeout limits the time of the whole run, with all attempts and waits; 0 means no limit.
	Timeout Duration   `json:"timeout,omitempty"`
	Output  OutputMode `json:"output"`
	Stdin   Stdin      `json:"stdin"`
	// TTY says whether the ranks' standard output is a terminal.
	TTY TTY `json:"tty"`
	// ExitCode chooses the meaning of the exit code of "gangrun run".
	ExitCode ExitMode `json:"exit_code"`
	// MPI is how the ranks find each other.
	MPI MPI `json:"mpi"`
	// EnvCompat names the MPI library whose variables are also set, for ranks that use no MPI.
	EnvCompat EnvCompat `json:"env_compat"`
	// Launcher is how gangrun starts agents on other hosts. Records of older versions of
	// gangrun leave it empty; it then means auto.
	Launcher LauncherMode `json:"launcher,omitempty"`
	// OnSignal is what gangrun does when it gets SIGUSR1 or SIGUSR2; empty means pass.
	OnSignal OnSignal `json:"on_signal,omitempty"`
	// BeforeStop is how gangrun asks ranks for a checkpoint before it ends the gang; empty means
	// BeforeStopNone. After it has asked, gangrun waits for a new checkpoint, at most for BeforeStopWait.
	BeforeStop     BeforeStop `json:"before_stop,omitempty"`
	BeforeStopWait Duration   `json:"before_stop_wait,omitempty"`
	// gangrun ends the run TimeReserve before the time limit of the batch job. If TimeReserve is 0, gangrun
	// chooses the time. The chosen time may also be 0 (see docs/batch.md).
	TimeReserve Duration `json:"time_reserve,omitempty"`
	// InitTimeout is the time after which gangrun reports the ranks that have not called
	// MPI_Init; 0 means never.
	InitTimeout Duration `json:"init_timeout"`
	// Watch says whether agents look at what the ranks do; empty means on.
	Watch WatchMode `json:"watch,omitempty"`
	// HangTimeout is how long a gang may make no progress before gangrun ends it because it hangs; 0 means for
	// ever. If the signs of progress of a job come more rarely than that, gangrun waits longer.
	HangTimeout Duration `json:"hang_timeout"`
	// StragglerWindow is the time over which the speed of ranks is compared to find stragglers; 0 means that
	// gangrun looks for no stragglers.
	StragglerWindow Duration `json:"straggler_window"`
	// EarlyStop is what gangrun does about what the curves of the job show. Curve has what the user knows about
	// the curves. RetryOnDiverge says how gangrun starts a job again that has diverged.
	EarlyStop      EarlyStop `json:"early_stop,omitempty"`
	Curve          Curve     `json:"curve"`
	RetryOnDiverge Diverge   `json:"retry_on_diverge,omitzero"`
	// MTBF is the mean time between two failures of the gang. gangrun computes from it how often the job should
	// save. 0 means that gangrun estimates it.
	MTBF Duration `json:"mtbf,omitempty"`
	// If Faulthandler is true, ranks that are Python programs write their stacks when the gang hangs.
	Faulthandler bool `json:"faulthandler,omitempty"`
	// Apps are the programs of a gang that runs several programs, as with "gangrun mpiexec" and colons.
	// Spec.Ranks is then the sum of their ranks, and Spec.Command is the command of the first program.
	Apps []App `json:"apps,omitempty"`
}

// Trial describes how gangrun tries the job on one rank or a few ranks before it starts the gang. If Command,
// Args and Env are empty, the trial has the job's own command, arguments and environment.
type Trial struct {
	// Command replaces the job's whole command.
	Command []string `json:"command,omitempty"`
	// Args are added to the end of the trial's command.
	Args []string `json:"args,omitempty"`
	// Env takes precedence over the job's environment.
	Env map[string]string `json:"env,omitempty"`
	// Ranks is the number of ranks with which the trial begins; 0 means 1.
	Ranks int `json:"ranks,omitempty"`
	// A trial passes as soon as it has printed Steps progress lines, or has run for Time. It also passes if it
	// ends with exit code 0 before that.
	Steps int      `json:"steps"`
	Time  Duration `json:"time"`
	// Mode says whether there is a trial, and whether gangrun discards what the trial writes.
	Mode TrialMode `json:"mode"`
}

// The default values of a Spec. They are part of the documentation.
const (
	DefaultRetries    = 3
	DefaultGrace      = Duration(5 * time.Second)
	DefaultTrialSteps = 2
	DefaultTrialTime  = Duration(60 * time.Second)

	DefaultInitTimeout = Duration(60 * time.Second)

	DefaultHangTimeout = Duration(10 * time.Minute)
	DefaultEarlyStop   = "not-finite=stop,diverged=stop"

	DefaultStragglerWindow = Duration(30 * time.Second)
	DefaultBeforeStopWait  = Duration(30 * time.Second)
	DefaultHostTimeout     = Duration(10 * time.Second)
	DefaultOrphanGrace     = Duration(20 * time.Second)
)

// MaxRanks is the largest size of a gang. No known MPI job is larger. Because of this limit, a
// typing error cannot fill the memory of a machine.
const MaxRanks = 1 << 17

// MaxLoopback bounds the number of simulated hosts on one machine.
const MaxLoopback = 256

// Default returns a Spec that has the default value of every field, and no command.
func Default() Spec {
	return Spec{
		Ranks:     1,
		Retries:   DefaultRetries,
		Preflight: PreflightFull,
		Health:    HealthOff,
		Trial:     Trial{Steps: DefaultTrialSteps, Time: DefaultTrialTime, Mode: TrialOn},
		Grace:     DefaultGrace,
		Output:    OutputFirst,
		Stdin:     StdinRank(0),
		TTY:       TTYAuto,
		ExitCode:  ExitRank,

		GPUs:          -1,
		GPUVisibility: GPUVisibilityGang,
		Locality:      LocalityAny,
		Patience:      DefaultPatience,

		MPI:         MPIAuto,
		EnvCompat:   EnvCompatNone,
		Launcher:    LauncherAuto,
		Container:   Container{Network: NetworkHost},
		InitTimeout: DefaultInitTimeout,
		HangTimeout: DefaultHangTimeout,
		OnSignal:    OnSignalPass,
		Watch:       WatchOn,
		BeforeStop:  BeforeStopNone,

		StragglerWindow: DefaultStragglerWindow,

		BeforeStopWait: DefaultBeforeStopWait,

		EarlyStop: DefaultEarlyStop, Curve: Curve{Goal: GoalAuto, DecayEnd: -1}, RetryOnDiverge: Diverge{Resume: DivergeOff, Times: 1},

		HostTimeout: DefaultHostTimeout,
		OrphanGrace: DefaultOrphanGrace,
	}
}

// Hidden is the text that gangrun writes in place of the value of a secret.
const Hidden = "***"

// Redacted returns a copy in which the values of secret variables are Hidden.
func (s Spec) Redacted() Spec {
	hide := func(env map[string]string) map[string]string {
		out := maps.Clone(env)
		for name := range out {
			if slices.Contains(s.Secret, name) {
				out[name] = Hidden
			}
		}
		return out
	}
	s.Env, s.Trial.Env, s.RetryOnDiverge.Env = hide(s.Env), hide(s.Trial.Env), hide(s.RetryOnDiverge.Env)
	return s
}
