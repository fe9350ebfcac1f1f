package jobfile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Kind is the kind of value that a Field takes.
type Kind int

// The kinds of values.
const (
	Number Kind = iota // a whole number
	// Range is a whole number, or MIN..MAX, as in 8..16: MAX sets this field, and MIN sets the field that is called
	// "min-" plus the name of this field.
	Range
	Switch    // true or false; a flag of this kind needs no value
	Text      // any text
	Path      // a path, made absolute against the caller's directory
	Hosts     // names of hosts in one text, with commas between
	Network   // a network as a CIDR, or the name of an interface
	Duration  // a duration with its unit
	Choice    // one of the Field's Choices
	Stdin     // a rank's number, or one of the Field's Choices
	Env       // a mapping of names to values; the flag K=V may be repeated
	Command   // words, or one line that is split into words; the first word must not be empty
	Words     // words, or one line that is split into words; any word may be empty
	Paths     // a list of paths, left as they are
	Names     // a list of names of environment variables
	Mounts    // a list of SOURCE[:TARGET][:ro|rw]; the flag takes one and may be repeated
	Size      // a number of bytes with its unit
	Policy    // a mapping of categories to actions
	Patience  // a duration or the word "strict"; or one of these for each level, as a mapping or as LEVEL=TIME with commas
	EarlyStop // off, advise or stop; or one of these for each verdict, as a mapping or as VERDICT=ACTION with commas
	Real      // a number, which may have a fraction
	Group     // a mapping of the fields whose names begin with the name of this one
)

// Field is one setting of a job: a flag of "gangrun run", a key of the job file, or both.
type Field struct {
	// Name is the name of the flag and of the key. A key inside of a Group is written with
	// the group's name and a dot, as in "trial.steps".
	Name string
	// FlagName is the name of the flag if it differs from Name. Callers use the method Flagged.
	FlagName string
	Short    string // the one-letter name of the flag; empty if it has none
	Kind     Kind
	// Value is the placeholder for the value in the help of the flag, as in "N".
	Value string
	// Usage describes the field: lower case, no full stop.
	Usage string
	// Default is the default value as text, or a description of it.
	Default string
	// Choices are the valid values, for completion. It is nil if any value is valid.
	Choices []string
	Flag    bool // it is a flag of "gangrun run"
	Key     bool // it is a key of the job file

	bare     string              // the value of a flag without a value; empty if the flag needs a value
	shortest job.Duration        // the shortest valid value of a Duration; 0 if only job.Spec limits the value
	at       func(*job.Spec) any // returns a pointer to the field in a Spec; nil for a Group
}

// Flagged returns the name of the field's flag.
func (f *Field) Flagged() string { return cmp.Or(f.FlagName, f.Name) }

// Alone returns the value that a flag gets if the user gives it without a value, as in --requeue, which means
// --requeue 3. name is the name of the flag. Alone returns "" if the flag must have a value, or if it never has
// a value.
func Alone(name string) string {
	if f, ok := findFlag(name); ok {
		return f.bare
	}
	return ""
}

// twoBeats is the longest time for which healthy hosts and gangrun can be silent. Each of them sends something once a
// second.
const twoBeats = job.Duration(2 * time.Second)

// Fields returns every Field, in the order of the documentation. The fields of a Group come
// right after it.
func Fields() []Field { return slices.Clone(table) }

var table = withDefaults([]Field{
	{Name: "name", Kind: Text, Value: "NAME", Flag: true, Key: true, Default: "none",
		Usage: "the name under which the run is shown",
		at:    func(s *job.Spec) any { return &s.Name }},
	{Name: "command", Kind: Command, Key: true, Default: "none",
		Usage: "run this program with these arguments as every rank",
		at:    func(s *job.Spec) any { return &s.Command }},
	{Name: "ranks", Short: "n", Kind: Range, Value: "N", Flag: true, Key: true,
		Usage: "start the command N times, as ranks 0 to N-1 of one gang; with 8..16, start 16 ranks, or fewer but at least 8 if there is no room for 16",
		at:    func(s *job.Spec) any { return &s.Ranks }},
	{Name: "min-ranks", Kind: Number, Value: "N", Flag: true, Key: true, Default: "0 (as many as ranks)",
		Usage: "start fewer ranks, but at least N, if there is no room for all, for instance after the loss of a host",
		at:    func(s *job.Spec) any { return &s.MinRanks }},
	{Name: "loopback", Kind: Number, Value: "H", Flag: true, Key: true, Default: "0 (no simulated hosts)",
		Usage: "spread the ranks over H simulated hosts, h1 to hH, on this machine",
		at:    func(s *job.Spec) any { return &s.Loopback }},
	{Name: "gpus-per-rank", Kind: Number, Value: "N", Flag: true, Key: true, Default: "-1 (1 where the hosts have GPUs, else 0)",
		Usage: "give every rank this many GPUs, close to each other; no other gang gets them while the job runs",
		at:    func(s *job.Spec) any { return &s.GPUs }},
	{Name: "gpu-visibility", Kind: Choice, Value: "WHOSE", Flag: true, Key: true, Choices: texts(job.GPUVisibilities()),
		Usage: "which GPUs CUDA_VISIBLE_DEVICES lists for a rank: gang is all GPUs of the gang on its host, in the order of LOCAL_RANK; rank is only its own",
		at:    func(s *job.Spec) any { return &s.GPUVisibility }},
	{Name: "hosts", Kind: Hosts, Value: "H1,H2:4", Flag: true, Key: true, Default: "none",
		Usage: "use these hosts, over SSH unless launcher says otherwise; a number after a colon is the host's slots",
		at:    func(s *job.Spec) any { return &s.Hosts }},
	{Name: "hostfile", Kind: Path, Value: "FILE", Flag: true, Key: true, Default: "none",
		Usage: "use the hosts of this file: a hostfile of Open MPI or MPICH, or a plain list",
		at:    func(s *job.Spec) any { return &s.Hostfile }},
	{Name: "inventory", Kind: Path, Value: "FILE", Flag: true, Key: true, Default: "none",
		Usage: "use the hosts of this YAML inventory; with loopback, simulate the first H of them with their GPUs",
		at:    func(s *job.Spec) any { return &s.Inventory }},
	{Name: "network", Kind: Network, Value: "NETWORK", Flag: true, Key: true, Default: "one that all hosts have",
		Usage: "the network over which ranks on several hosts communicate: a CIDR such as 10.0.0.0/16, or the name of an interface",
		at:    func(s *job.Spec) any { return &s.Network }},
	{Name: "host-timeout", Kind: Duration, Value: "TIME", Flag: true, Key: true,
		Usage: "count a host as lost after this time without contact, at least 2s", shortest: twoBeats,
		at: func(s *job.Spec) any { return &s.HostTimeout }},
	{Name: "orphan-grace", Kind: Duration, Value: "TIME", Flag: true, Key: true,
		Usage: "let ranks on other hosts run for this long, at least 2s, while their agent receives nothing from gangrun; after the loss of a host, the next attempt waits for this time and 5s, unless the host confirms earlier that no rank is left", shortest: twoBeats,
		at: func(s *job.Spec) any { return &s.OrphanGrace }},
	{Name: "locality", Kind: Choice, Value: "LEVEL", Flag: true, Key: true, Choices: texts(job.Localities()),
		Usage: "the widest level over which the gang's GPUs may be spread",
		at:    func(s *job.Spec) any { return &s.Locality }},
	{Name: "patience", Kind: Patience, Value: "TIME", Flag: true, Key: true,
		Usage: "wait this long for GPUs at the closest level of locality that the hosts can give, then this long at the next wider level, and so on; with strict, never go on to the next level; the value is one time for all levels, or one for each: {island: 10m, host: 2m}, on the command line island=10m,host=2m",
		at:    func(s *job.Spec) any { return &s.Patience }},
	{Name: "env", Short: "e", Kind: Env, Value: "K=V", Flag: true, Key: true, Default: "none",
		Usage: "set environment variables for every rank; they take precedence over those that gangrun sets; the flag sets one variable and may be repeated; -e K takes the value from the caller's environment",
		at:    func(s *job.Spec) any { return &s.Env }},
	{Name: "secret", Kind: Names, Key: true, Default: "none",
		Usage: "hide the values of these variables; gangrun takes those that env does not set from its own environment",
		at:    func(s *job.Spec) any { return &s.Secret }},
	{Name: "workdir", Kind: Path, Value: "DIR", Flag: true, Key: true, Default: "the current directory",
		Usage: "start every rank in this directory",
		at:    func(s *job.Spec) any { return &s.Workdir }},
	{Name: "image", Kind: Text, Value: "IMAGE", Flag: true, Key: true, Default: "none",
		Usage: "run the ranks in this image, in one container on each host: a reference such as ubuntu:24.04, or the path of an archive or an OCI layout, which gangrun sends to hosts that lack it",
		at:    func(s *job.Spec) any { return &s.Image }},
	{Name: "container", Kind: Group, Key: true, Default: "see below",
		Usage: "the containers of a job with an image"},
	{Name: "container.mounts", FlagName: "mount", Kind: Mounts, Value: "SRC[:DST][:rw]", Flag: true, Key: true, Default: "none",
		Usage: "show a file or directory of the hosts to the ranks, read-only unless :rw follows; the flag has one mount and may be repeated; the checkpoint directory and inputs are mounted anyway",
		at:    func(s *job.Spec) any { return &s.Container.Mounts }},
	{Name: "container.workdir", FlagName: "container-workdir", Kind: Text, Value: "DIR", Flag: true, Key: true, Default: "workdir if it is mounted, else that of the image",
		Usage: "start every rank in this directory of the container",
		at:    func(s *job.Spec) any { return &s.Container.Workdir }},
	{Name: "container.network", FlagName: "container-network", Kind: Choice, Value: "NETWORK", Flag: true, Key: true, Choices: texts(job.ContainerNetworks()),
		Usage: "the network that ranks in containers see: the host's, or none but a loopback interface",
		at:    func(s *job.Spec) any { return &s.Container.Network }},
	{Name: "container.user", FlagName: "container-user", Kind: Text, Value: "USER", Flag: true, Key: true, Default: "the user as whom gangrun logs in to the host; root in a rootless containerd",
		Usage: "run ranks in containers as UID:GID, or as the user of the image: image",
		at:    func(s *job.Spec) any { return &s.Container.User }},
	{Name: "container.shm-size", FlagName: "shm-size", Kind: Size, Value: "SIZE", Flag: true, Key: true, Default: "0 (half of the host's memory)",
		Usage: "the size of /dev/shm in containers, as in 8GiB",
		at:    func(s *job.Spec) any { return &s.Container.ShmSize }},
	{Name: "container.memory", FlagName: "container-memory", Kind: Size, Value: "SIZE", Flag: true, Key: true, Default: "0 (no limit)",
		Usage: "limit the memory of all ranks of a host together",
		at:    func(s *job.Spec) any { return &s.Container.Memory }},
	{Name: "container.cpus", FlagName: "container-cpus", Kind: Number, Value: "N", Flag: true, Key: true, Default: "0 (no limit)",
		Usage: "limit the CPU time of all ranks of a host together to that of N CPUs",
		at:    func(s *job.Spec) any { return &s.Container.CPUs }},
	{Name: "container.read-only", FlagName: "container-read-only", Kind: Switch, Flag: true, Key: true, Default: "false",
		Usage: "make the root directory of containers read-only; /tmp and /var/tmp are in memory then",
		at:    func(s *job.Spec) any { return &s.Container.ReadOnly }},
	{Name: "container.gpu-kind", FlagName: "gpu-kind", Kind: Text, Value: "KIND", Flag: true, Key: true, Default: "nvidia.com/gpu",
		Usage: "the kind by which the Container Device Interface of the hosts names GPUs",
		at:    func(s *job.Spec) any { return &s.Container.GPUKind }},
	{Name: "inputs", Kind: Paths, Key: true, Default: "none",
		Usage: "check that every host can read these files and directories before the gang starts; relative paths are relative to workdir",
		at:    func(s *job.Spec) any { return &s.Inputs }},
	{Name: "checkpoint-dir", Kind: Path, Value: "DIR", Flag: true, Key: true, Default: "none",
		Usage: "look for the job's checkpoints in this directory",
		at:    func(s *job.Spec) any { return &s.CheckpointDir }},
	{Name: "resume", Kind: Switch, Flag: true, Key: true,
		Usage: "start the first attempt, too, from the newest good checkpoint, and not only retries",
		at:    func(s *job.Spec) any { return &s.Resume }},
	{Name: "requeue", Kind: Number, Value: "N", Flag: true, Key: true, Default: "0 (never)", bare: "3",
		Usage: "inside a Slurm job, ask Slurm to queue the job again if another run may help, without the hosts at fault, until it has started N times in all; later starts resume from the newest good checkpoint; --requeue alone is --requeue 3",
		at:    func(s *job.Spec) any { return &s.Requeue }},
	{Name: "rules", Kind: Path, Value: "FILE", Flag: true, Key: true, Default: "only gangrun's own rules",
		Usage: "find the cause of a failure by the rules in this file, too; they count more than gangrun's own",
		at:    func(s *job.Spec) any { return &s.Rules }},
	{Name: "progress", Kind: Text, Value: "PATTERN", Flag: true, Key: true, Default: "the forms that gangrun knows",
		Usage: "the lines that this Go regular expression matches are the job's progress, and no others; its groups are named step or epoch, and total and loss, as in 'sweep (?P<step>\\d+) of (?P<total>\\d+)'",
		at:    func(s *job.Spec) any { return &s.Progress }},
	{Name: "retries", Kind: Number, Value: "N", Flag: true, Key: true,
		Usage: "give up after N restarts in a row without progress",
		at:    func(s *job.Spec) any { return &s.Retries }},
	{Name: "preflight", Kind: Choice, Value: "HOW", Flag: true, Key: true, Choices: texts(job.PreflightModes()),
		Usage: "check the job before its gang starts: full is static checks and a trial, static is only the checks, off is neither",
		at:    func(s *job.Spec) any { return &s.Preflight }},
	{Name: "health", Kind: Choice, Value: "HOW", Flag: true, Key: true, Choices: texts(job.HealthModes()),
		Usage: "with quick, the preflight measures for at most 20s how fast the GPUs, the network, the memory, the CPUs and the disks of the hosts are, and warns of everything that is far slower than its peers; it has no effect with preflight off",
		at:    func(s *job.Spec) any { return &s.Health }},
	{Name: "refuse-known", Kind: Switch, Flag: true, Key: true,
		Usage: "do not start a job that has failed before because of its inputs or its code, and has not changed since (exit code 65); without this, the preflight only warns",
		at:    func(s *job.Spec) any { return &s.RefuseKnown }},
	{Name: "trial", Kind: Group, Key: true, Default: "see below",
		Usage: "how the job is tried before its gang starts, or off"},
	{Name: "trial.command", Kind: Command, Key: true, Default: "the job's command",
		Usage: "try this command instead of the job's",
		at:    func(s *job.Spec) any { return &s.Trial.Command }},
	{Name: "trial.args", Kind: Words, Key: true, Default: "none",
		Usage: "add these arguments to the end of the trial's command",
		at:    func(s *job.Spec) any { return &s.Trial.Args }},
	{Name: "trial.env", Kind: Env, Key: true, Default: "none",
		Usage: "set environment variables for the trial; they take precedence over the job's",
		at:    func(s *job.Spec) any { return &s.Trial.Env }},
	{Name: "trial.ranks", FlagName: "trial-ranks", Kind: Number, Value: "N", Flag: true, Key: true, Default: "0 (one rank)",
		Usage: "begin the trial with this many ranks",
		at:    func(s *job.Spec) any { return &s.Trial.Ranks }},
	{Name: "trial.steps", Kind: Number, Key: true,
		Usage: "the trial has passed after this many lines of progress",
		at:    func(s *job.Spec) any { return &s.Trial.Steps }},
	{Name: "trial.time", Kind: Duration, Key: true,
		Usage: "the trial has passed when it has run for this long",
		at:    func(s *job.Spec) any { return &s.Trial.Time }},
	{Name: "trial.mode", FlagName: "trial", Kind: Choice, Value: "HOW", Flag: true, Key: true, Choices: texts(job.TrialModes()),
		Usage: "try the job on one rank before its gang starts: on discards what the trial writes, and omits the trial if a host cannot do that; uncontained lets the trial write to the job's files, and does not start the gang if the trial has changed some; in a job file, trial: off is short for trial: {mode: off}",
		at:    func(s *job.Spec) any { return &s.Trial.Mode }},
	{Name: "policy", Kind: Policy, Key: true, Default: "each category's own",
		Usage: "whether failures of a category are retried: never, once, again or elsewhere",
		at:    func(s *job.Spec) any { return &s.Policy }},
	{Name: "grace", Kind: Duration, Value: "TIME", Flag: true, Key: true,
		Usage: "wait this long between SIGTERM and SIGKILL when the gang is ended",
		at:    func(s *job.Spec) any { return &s.Grace }},
	{Name: "timeout", Kind: Duration, Value: "TIME", Flag: true, Key: true, Default: "0s (no limit)",
		Usage: "end the whole run, all attempts and waits included, after this long",
		at:    func(s *job.Spec) any { return &s.Timeout }},
	{Name: "output", Kind: Choice, Value: "WHOSE", Flag: true, Key: true, Choices: texts(job.OutputModes()),
		Usage: "show the output of these ranks: first is rank 0 and ranks that fail, failed is only ranks that fail; log files have the output of every rank",
		at:    func(s *job.Spec) any { return &s.Output }},
	{Name: "stdin", Kind: Stdin, Value: "RANK", Flag: true, Key: true, Choices: []string{string(job.StdinAll), string(job.StdinNone)},
		Usage: "give standard input to the rank of this number, to all or to none",
		at:    func(s *job.Spec) any { return &s.Stdin }},
	{Name: "tty", Kind: Choice, Value: "WHEN", Flag: true, Key: true, Choices: texts(job.TTYs()),
		Usage: "make standard output of the ranks a terminal, so that programs write each line at once: auto does so for Open MPI, as its mpirun does; log files have the same bytes in both cases",
		at:    func(s *job.Spec) any { return &s.TTY }},
	{Name: "exit-code", Kind: Choice, Value: "WHAT", Flag: true, Key: true, Choices: texts(job.ExitModes()),
		Usage: "end with the code of the rank that failed first, or with the verdict: 75 if running again may help, 93 if it does not",
		at:    func(s *job.Spec) any { return &s.ExitCode }},
	{Name: "mpi", Kind: Choice, Value: "MPI", Flag: true, Key: true, Choices: texts(job.MPIs()),
		Usage: "how ranks find each other: mpich is for MPICH and its family, openmpi starts the job's own mpirun, none only sets the environment, auto decides by the program's libraries",
		at:    func(s *job.Spec) any { return &s.MPI }},
	{Name: "env-compat", Kind: Choice, Value: "MPI", Flag: true, Key: true, Choices: texts(job.EnvCompats()),
		Usage: "also set the variables of this MPI's launcher, for ranks that use no MPI: openmpi is OMPI_COMM_WORLD_RANK and the like, mpich is PMI_RANK and the like, all is both",
		at:    func(s *job.Spec) any { return &s.EnvCompat }},
	{Name: "launcher", Kind: Choice, Value: "HOW", Flag: true, Key: true, Choices: texts(job.LauncherModes()),
		Usage: "how gangrun reaches other hosts: by a step of the Slurm job that it is in, over SSH, or by kubectl exec (the names of hosts are then those of pods); auto takes slurm for the nodes of a job, kubectl in a launcher pod of the MPI Operator v1, and otherwise ssh",
		at:    func(s *job.Spec) any { return &s.Launcher }},
	{Name: "on-signal", Kind: Choice, Value: "WHAT", Flag: true, Key: true, Choices: texts(job.OnSignals()),
		Usage: "on SIGUSR1 or SIGUSR2, as sbatch --signal sends them: pass the signal to the ranks that handle it, end the run cleanly, or ignore the signal",
		at:    func(s *job.Spec) any { return &s.OnSignal }},
	{Name: "before-stop", Kind: Choice, Value: "HOW", Flag: true, Key: true, Choices: texts(job.BeforeStops()),
		Usage: "before gangrun ends the gang, ask the ranks for a checkpoint, and wait until there is a new good one: send this signal to the ranks that handle it, or make the file that GANGRUN_STOP_FILE names",
		at:    func(s *job.Spec) any { return &s.BeforeStop }},
	{Name: "before-stop-wait", Kind: Duration, Value: "TIME", Flag: true, Key: true,
		Usage: "wait at most this long for the checkpoint for which before-stop asks",
		at:    func(s *job.Spec) any { return &s.BeforeStopWait }},
	{Name: "time-reserve", Kind: Duration, Value: "TIME", Flag: true, Key: true, Default: "with before-stop, the sum of before-stop-wait, grace and 5s; without it, the sum of grace and 5s if requeue is set, if the batch system is not Slurm, or if gangrun runs as a child of a shell; otherwise 0s",
		Usage: "inside a batch job with a time limit that gangrun knows, end the run cleanly this long before the limit",
		at:    func(s *job.Spec) any { return &s.TimeReserve }},
	{Name: "init-timeout", Kind: Duration, Value: "TIME", Flag: true, Key: true,
		Usage: "report after this long which ranks have not called MPI_Init, without ending them; 0 never reports",
		at:    func(s *job.Spec) any { return &s.InitTimeout }},
	{Name: "watch", Kind: Choice, Value: "MODE", Flag: true, Key: true, Choices: texts(job.WatchModes()),
		Usage: "look at what the ranks do, about once a second; off finds no hangs and no stragglers",
		at:    func(s *job.Spec) any { return &s.Watch }},
	{Name: "hang-timeout", Kind: Duration, Value: "TIME", Flag: true, Key: true,
		Usage: "end a gang that makes no progress for this long, and start it again if that may help; if 5 times the longest pause so far is longer, that is the limit; 0 never ends a gang",
		at:    func(s *job.Spec) any { return &s.HangTimeout }},
	{Name: "straggler-window", Kind: Duration, Value: "TIME", Flag: true, Key: true,
		Usage: "compare the speed of the ranks over this time, and report ranks that stay below 0.75 of the median of the others; 0 never does",
		at:    func(s *job.Spec) any { return &s.StragglerWindow }},
	{Name: "early-stop", Kind: EarlyStop, Value: "ACTION", Flag: true, Key: true,
		Usage: "what to do about verdicts on the loss curve and other metrics, while the gang runs: off does nothing, advise only reports the verdict, and stop ends the run if the verdict is sure, after a checkpoint if before-stop is set; the value is one action for all verdicts, or one for each: {plateau: stop, flat: off}, on the command line plateau=stop,flat=off; verdicts that are not named keep their default: stop for not-finite and diverged, else advise",
		at:    func(s *job.Spec) any { return &s.EarlyStop }},
	{Name: "curve", Kind: Group, Key: true, Default: "see below",
		Usage: "what helps to judge the curves of the job"},
	{Name: "curve.metric", FlagName: "metric", Kind: Text, Value: "NAME", Flag: true, Key: true, Default: "a validation loss, else another validation metric, else the training loss",
		Usage: "judge the run by this metric",
		at:    func(s *job.Spec) any { return &s.Curve.Metric }},
	{Name: "curve.goal", FlagName: "goal", Kind: Choice, Value: "GOAL", Flag: true, Key: true, Choices: texts(job.Goals()),
		Usage: "whether lower values of the metric are better (min), or higher ones (max); auto decides by its name",
		at:    func(s *job.Spec) any { return &s.Curve.Goal }},
	{Name: "curve.target", FlagName: "target", Kind: Real, Value: "VALUE", Flag: true, Key: true, Default: "none",
		Usage: "the metric should reach this value",
		at:    func(s *job.Spec) any { return &s.Curve.Target }},
	{Name: "curve.total", FlagName: "total-steps", Kind: Number, Value: "N", Flag: true, Key: true, Default: "0 (what the job tells)",
		Usage: "the run has this many steps",
		at:    func(s *job.Spec) any { return &s.Curve.Total }},
	{Name: "curve.decay-end", FlagName: "decay-end", Kind: Number, Value: "N", Flag: true, Key: true, Default: "-1 (not known)",
		Usage: "from this step on, the learning rate no longer falls; 0 is a constant rate; without it, no plateau is sure",
		at:    func(s *job.Spec) any { return &s.Curve.DecayEnd }},
	{Name: "retry-on-diverge", Kind: Group, Key: true, Default: "see below",
		Usage: "how a job that has diverged is started again"},
	{Name: "retry-on-diverge.resume", FlagName: "retry-on-diverge", Kind: Choice, Value: "WHERE", Flag: true, Key: true, Choices: texts(job.DivergeResumes()),
		Usage: "what to do if the model has diverged: earlier starts the job again from the newest good checkpoint that is older than the rise of the loss and has no NaN or +Inf; off does not",
		at:    func(s *job.Spec) any { return &s.RetryOnDiverge.Resume }},
	{Name: "retry-on-diverge.skip-steps", FlagName: "skip-steps", Kind: Number, Value: "N", Flag: true, Key: true, Default: "0",
		Usage: "set GANGRUN_SKIP_STEPS to this number in attempts that start from that checkpoint, for programs that then skip this number of batches of data",
		at:    func(s *job.Spec) any { return &s.RetryOnDiverge.SkipSteps }},
	{Name: "retry-on-diverge.env", Kind: Env, Key: true, Default: "none",
		Usage: "set environment variables for all attempts from then on; they take precedence over the job's",
		at:    func(s *job.Spec) any { return &s.RetryOnDiverge.Env }},
	{Name: "retry-on-diverge.times", Kind: Number, Key: true,
		Usage: "start the job again in this way at most this often in a run",
		at:    func(s *job.Spec) any { return &s.RetryOnDiverge.Times }},
	{Name: "mtbf", Kind: Duration, Value: "TIME", Flag: true, Key: true, Default: "from the history of the job or of its hosts, else 154 days divided by the number of hosts",
		Usage: "the mean time between failures of the gang, by which gangrun computes how often the job should save",
		at:    func(s *job.Spec) any { return &s.MTBF }},
	{Name: "faulthandler", Kind: Switch, Flag: true, Key: true,
		Usage: "when the gang hangs, Python ranks write their stacks, for hosts that have no py-spy; ranks that use NCCL through PyTorch also write which collectives they have called; gangrun sets PYTHONPATH and uses the signal 57 for this",
		at:    func(s *job.Spec) any { return &s.Faulthandler }},
})

// withDefaults sets the defaults of fields from job.Default.
func withDefaults(fields []Field) []Field {
	s := job.Default()
	for i, f := range fields {
		if f.Default == "" {
			fields[i].Default = written(f.at(&s))
		}
	}
	return fields
}

// find returns the field with that name.
func find(name string) (*Field, bool) {
	i := slices.IndexFunc(table, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &table[i], true
}

// findFlag returns the field whose flag has that name.
func findFlag(name string) (*Field, bool) {
	i := slices.IndexFunc(table, func(f Field) bool { return f.Flag && f.Flagged() == name })
	if i < 0 {
		return nil, false
	}
	return &table[i], true
}

// keys lists the names of the keys that are allowed in a group, without the name of the group. If group is empty, it
// lists the keys that are allowed at the top of the file.
func keys(group string) []string {
	var names []string
	for _, f := range table {
		parent, name, inside := strings.Cut(f.Name, ".")
		if !inside {
			parent, name = "", f.Name
		}
		if f.Key && parent == group {
			names = append(names, name)
		}
	}
	return names
}

func texts[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}
