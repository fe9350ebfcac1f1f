package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PreflightMode is how much is checked before the gang is started.
type PreflightMode string

// The preflight modes.
const (
	PreflightFull   PreflightMode = "full"   // static checks, then a trial
	PreflightStatic PreflightMode = "static" // static checks only
	PreflightOff    PreflightMode = "off"
)

// PreflightModes lists every PreflightMode.
func PreflightModes() []PreflightMode {
	return []PreflightMode{PreflightFull, PreflightStatic, PreflightOff}
}

// TrialMode says whether gangrun runs a trial before it starts the gang, and how.
type TrialMode string

// The trial modes.
const (
	// With TrialOn, gangrun runs the trial and discards everything that the trial writes. On
	// hosts that cannot discard it, there is no trial.
	TrialOn  TrialMode = "on"
	TrialOff TrialMode = "off"
	// With TrialUncontained, gangrun runs the trial on the job's own files, and keeps what it
	// writes.
	TrialUncontained TrialMode = "uncontained"
)

// TrialModes lists every TrialMode.
func TrialModes() []TrialMode { return []TrialMode{TrialOn, TrialOff, TrialUncontained} }

// OutputMode says whose output the terminal shows. The log files always have the output of every
// rank.
type OutputMode string

// The output modes.
const (
	OutputFirst  OutputMode = "first"  // rank 0, and ranks that fail
	OutputAll    OutputMode = "all"    // every rank
	OutputFailed OutputMode = "failed" // only ranks that fail
	OutputNone   OutputMode = "none"
)

// OutputModes lists every OutputMode.
func OutputModes() []OutputMode {
	return []OutputMode{OutputFirst, OutputAll, OutputFailed, OutputNone}
}

// ExitMode is what the exit code of a run means.
type ExitMode string

// The exit modes.
const (
	ExitRank    ExitMode = "rank"    // the exit code of the rank that failed first
	ExitVerdict ExitMode = "verdict" // 75 if it may help to requeue the job, 93 if it does not help
)

// ExitModes lists every ExitMode.
func ExitModes() []ExitMode { return []ExitMode{ExitRank, ExitVerdict} }

// GPUVisibility is which of the gang's GPUs each rank sees.
type GPUVisibility string

// The GPU visibilities.
const (
	GPUVisibilityGang GPUVisibility = "gang" // all GPUs of the gang on the rank's host, in the order of LOCAL_RANK
	GPUVisibilityRank GPUVisibility = "rank" // only the rank's own GPUs
)

// GPUVisibilities lists every GPUVisibility.
func GPUVisibilities() []GPUVisibility {
	return []GPUVisibility{GPUVisibilityGang, GPUVisibilityRank}
}

// LauncherMode says how gangrun starts agents on other hosts.
type LauncherMode string

// The launcher modes.
const (
	// LauncherAuto is LauncherSlurm for the nodes of a Slurm job, LauncherKubectl in a launcher
	// pod of the MPI Operator v1, and otherwise LauncherSSH.
	LauncherAuto    LauncherMode = "auto"
	LauncherSlurm   LauncherMode = "slurm" // a step of the Slurm job
	LauncherSSH     LauncherMode = "ssh"
	LauncherKubectl LauncherMode = "kubectl" // kubectl exec
)

// LauncherModes lists every LauncherMode.
func LauncherModes() []LauncherMode {
	return []LauncherMode{LauncherAuto, LauncherSlurm, LauncherSSH, LauncherKubectl}
}

// OnSignal is what gangrun does when it gets SIGUSR1 or SIGUSR2. A batch system may send these
// signals some time before the end of a job.
type OnSignal string

// The values of OnSignal.
const (
	OnSignalPass   OnSignal = "pass" // send the signal to the ranks that handle it
	OnSignalStop   OnSignal = "stop" // end the run (see docs/batch.md)
	OnSignalIgnore OnSignal = "ignore"
)

// OnSignals lists every OnSignal.
func OnSignals() []OnSignal { return []OnSignal{OnSignalPass, OnSignalStop, OnSignalIgnore} }

// WatchMode says whether agents look at what their ranks do.
type WatchMode string

// The values of WatchMode.
const (
	WatchOn  WatchMode = "on"
	WatchOff WatchMode = "off" // gangrun finds no hangs and no stragglers, and status shows less
)

// WatchModes lists every WatchMode.
func WatchModes() []WatchMode { return []WatchMode{WatchOn, WatchOff} }

// BeforeStop is how gangrun asks ranks for a checkpoint before it ends them: by a signal or a file.
type BeforeStop string

// The values of BeforeStop.
const (
	BeforeStopNone BeforeStop = "none"
	BeforeStopUSR1 BeforeStop = "sigusr1"
	BeforeStopUSR2 BeforeStop = "sigusr2"
	BeforeStopHUP  BeforeStop = "sighup"
	BeforeStopINT  BeforeStop = "sigint"
	BeforeStopTERM BeforeStop = "sigterm"
	BeforeStopFile BeforeStop = "file" // by the file that GANGRUN_STOP_FILE names
)

// BeforeStops lists every BeforeStop.
func BeforeStops() []BeforeStop {
	return []BeforeStop{BeforeStopNone, BeforeStopUSR1, BeforeStopUSR2, BeforeStopHUP, BeforeStopINT, BeforeStopTERM, BeforeStopFile}
}

// Number returns the number of the signal that asks the ranks for a checkpoint. It returns 0 if no signal asks
// them.
func (b BeforeStop) Number() int {
	return map[BeforeStop]int{BeforeStopUSR1: 10, BeforeStopUSR2: 12, BeforeStopHUP: 1, BeforeStopINT: 2, BeforeStopTERM: 15}[b]
}

// Asks reports whether gangrun asks ranks for a checkpoint.
func (b BeforeStop) Asks() bool { return b == BeforeStopFile || b.Number() != 0 }

// StopFile returns the path of the file that gangrun makes to ask the ranks of a run for a checkpoint. It
// returns "" if gangrun does not ask them by a file.
func (s Spec) StopFile(run string) string {
	if s.BeforeStop != BeforeStopFile || s.CheckpointDir == "" {
		return ""
	}
	return strings.TrimSuffix(s.CheckpointDir, "/") + "/.gangrun-stop-" + run
}

// EnvCompat is the MPI library whose environment variables gangrun also sets, for programs that read their rank
// from those variables.
type EnvCompat string

// The values of EnvCompat.
const (
	EnvCompatNone    EnvCompat = "none"
	EnvCompatOpenMPI EnvCompat = "openmpi" // OMPI_COMM_WORLD_RANK and its family
	EnvCompatMPICH   EnvCompat = "mpich"   // PMI_RANK and its family
	EnvCompatAll     EnvCompat = "all"     // both
)

// EnvCompats lists every EnvCompat.
func EnvCompats() []EnvCompat {
	return []EnvCompat{EnvCompatNone, EnvCompatOpenMPI, EnvCompatMPICH, EnvCompatAll}
}

// Includes reports whether gangrun is to set the variables of an MPI library.
func (c EnvCompat) Includes(one EnvCompat) bool { return c == one || c == EnvCompatAll }

// Stdin says which ranks get gangrun's standard input. It is "none", "all", or the number of
// one rank.
type Stdin string

// The Stdin values that name no single rank.
const (
	StdinNone Stdin = "none"
	StdinAll  Stdin = "all"
)

// KeptStdin limits how many bytes of its standard input gangrun keeps for later attempts if the standard input
// is a pipe.
const KeptStdin = 1 << 30

// StdinRank returns the Stdin with which only that rank gets standard input.
func StdinRank(rank int) Stdin { return Stdin(strconv.Itoa(rank)) }

// Feeds reports whether rank gets standard input.
func (s Stdin) Feeds(rank int) bool { return s == StdinAll || s == StdinRank(rank) }

// ParseStdin parses the value of --stdin for a gang with that number of ranks.
func ParseStdin(text string, ranks int) (Stdin, error) {
	if s := Stdin(text); s == StdinNone || s == StdinAll {
		return s, nil
	}
	rank, err := strconv.Atoi(text)
	if err != nil {
		return "", fmt.Errorf("stdin %q is neither a rank nor all nor none", text)
	}
	if rank < 0 || rank >= ranks {
		return "", fmt.Errorf("stdin names rank %d, but the gang has ranks 0 to %d", rank, ranks-1)
	}
	return StdinRank(rank), nil
}

// ParseMode returns the mode that text names. what is the name of the flag or key. If text is not valid, the error
// begins with this name and lists the valid modes.
func ParseMode[M ~string](what, text string, modes []M) (M, error) {
	if m := M(text); slices.Contains(modes, m) {
		return m, nil
	}
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = string(m)
	}
	return "", fmt.Errorf("%s %q is none of %s", what, text, strings.Join(names, ", "))
}
