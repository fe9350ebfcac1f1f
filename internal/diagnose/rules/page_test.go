package rules

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

// meanings describes the categories for the documentation.
var meanings = map[job.Category]string{
	job.IncorrectInputs:     "A file, dataset, argument or format that was given to the job is wrong or missing.",
	job.SemanticError:       "The code does not fit its data or its libraries.",
	job.SyntaxError:         "The program cannot be parsed.",
	job.ImportError:         "A module or package of the program's language is missing or of the wrong version.",
	job.PermissionError:     "The user lacks a permission that the job needs.",
	job.Traceback:           "Any other exception that the program did not catch.",
	job.Assertion:           "The program or a library checked a condition, and it did not hold.",
	job.CPUOOM:              "The memory of the host, or of the job's share of it, is full.",
	job.GPUOOM:              "The memory of the GPU is full.",
	job.ModelDiverged:       "The loss is no longer a finite number, or grows. If gangrun has found that itself and has ended the gang ([curves.md](curves.md)), the signature is not-finite or diverged.",
	job.OutputError:         "The job cannot write its results to the place that the user named.",
	job.CoreDump:            "The process crashed: it called abort(), or a signal for a fault of the program ended it.",
	job.InvalidMemoryAccess: "The process accessed memory that does not belong to it.",
	job.Killed:              "A signal from outside, which gangrun did not send, ended the process.",
	job.CUDAFailure:         "A GPU kernel or a CUDA library failed.",
	job.CUDAInit:            "CUDA or the GPU cannot be used on the host.",
	job.CUDAVersion:         "The versions of driver, CUDA and program do not fit together.",
	job.MissingLibrary:      "A shared library is missing or too old.",
	job.MPIError:            "An MPI call failed, or the program aborted through MPI.",
	job.CollectiveTimeout:   "Ranks waited in a collective for others that did not come.",
	job.MPIRuntime:          "The MPI library itself, its daemons or its transport failed.",
	job.CheckpointError:     "A checkpoint cannot be loaded.",
	job.StorageError:        "A disk, file server or object store failed.",
	job.DiskFull:            "A file system is full, or a quota is used up.",
	job.GPUHardware:         "A GPU or its links failed.",
	job.HostLost:            "A host stopped answering or failed. If gangrun's controller died, and ranks had already ended or not yet started when another controller took over the run, the signature is controller-gone, and the action is `again`: no host is to blame.",
	job.NetworkError:        "A connection failed. (If another rank had ended before, the failure of that rank is the cause. The signatures with *echo* count only if no such failure was found.)",
	job.PortInUse:           "A port that the job wants is taken.",
	job.Preempted:           "The batch system or the cloud took the hosts away.",
	job.LaunchError:         "The program, or a process or thread of it, could not be started. If a gang has lost the [lease](glossary.md#gpus) of its GPUs, the signature is lease-lost, and the action is `again`: the next attempt takes a new lease.",
	job.Hang:                "The ranks run but make no progress. gangrun finds that out itself and ends the gang; the signature is then hang-start, hang-init, hang-step, hang-silent or hang-final ([hangs.md](hangs.md#stages)). The rules in the table recognise what the kernel or another program reports about a hang.",
	job.Straggler:           "One rank is much slower than the others. By default, gangrun only reports that, and the gang goes on. With `policy: {straggler: elsewhere}` or `again`, gangrun ends the gang and starts it again ([stragglers.md](stragglers.md#how-to-leave-out-a-slow-host)); the signature is then `slow-` followed by the reason: `slow-memory` for `memory`, and `slow-slow-disk` for `slow-disk`. The rule in the table recognises what another program reports about a slow rank.",
	job.TimeLimit:           "A time limit ended the job.",
	job.Cancelled:           "Somebody ended the run.",
	job.StoppedEarly:        "gangrun has ended the run because of what a curve of the job shows, as `early-stop` says ([curves.md](curves.md)). The signature is the verdict: reached, plateau, flat or will-miss.",
	job.Unknown:             "The job failed, and gangrun found no cause.",
}

// actions describes the actions for the documentation.
var actions = map[job.Action]string{
	job.RetryNever:     "no retry: the same would happen again",
	job.RetryOnce:      "one retry",
	job.RetryAgain:     "several retries, each after a longer wait",
	job.RetryElsewhere: "several retries, as for `again`, but without the host or GPU that failed",
}

// limits says how often retry.Policy lets a run restart. A ´ stands for a backquote.
const limits = `
## How often gangrun retries

An attempt makes progress if it writes a newer good checkpoint than all attempts before it. If the job has no
checkpoint directory, an attempt makes progress if it prints a higher step than all attempts before it.
Several limits hold. They count only the restarts since the last attempt that made progress:

- gangrun restarts a job at most ´--retries´ times (3). A restart after ´preempted´ does not count.
- If the action is ´once´, gangrun restarts only once after failures of the same category and signature.
- If the action is ´again´ or ´elsewhere´, and the cause has an artefact, gangrun restarts only once after failures
  of the same category and signature with the same artefact. The artefact is the file, port, library, GPU or host that
  the cause is about. This limit does not apply to ´preempted´.
- If two attempts in a row fail at the same step, with the same category and signature, and the second made no
  progress, gangrun does not restart the job. This limit does not apply to ´preempted´.

If [a checkpoint cannot be loaded](checkpoints.md#when-a-checkpoint-cannot-be-loaded), gangrun may restart the job
from an earlier checkpoint. Only ´--retries´ limits the first such restart without progress. The restarts after
[a divergence](curves.md#going-back-after-a-divergence) have a limit of their own.
`

// Document writes docs/categories.md: every category with its fault, default
// action and signatures.
func Document(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, `# Categories of failures

Generated from the rules in internal/diagnose/rules; do not edit. Category slugs and
signatures are an API: they appear as `+"`category` and `signature`"+` of a cause in
reports and in `+"`gangrun diagnose -o json`"+`. A job file's `+"`policy:`"+` replaces the
default action of a category. [How often gangrun retries](#how-often-gangrun-retries)
says which limits all actions have. [add-a-rule.md](add-a-rule.md) says how to add a signature.

| action | what gangrun does |
|---|---|
`)
	for _, a := range job.Actions() {
		fmt.Fprintf(out, "| `%s` | %s |\n", a, actions[a])
	}
	fmt.Fprint(out, `
*Fault* says where such a failure mostly comes from: from the user's job, from the engine (the framework, CUDA or MPI), from the infrastructure, from either the job or the infrastructure, or from the course of the run.
A signature marked *echo* usually follows from the failure of another rank. It is
the cause only if there is no other sign of a failure. A retry that is *charged* counts against `+"`--retries`"+`.

| category | fault | default action | retry charged |
|---|---|---|---|
`)
	for _, c := range job.Categories() {
		charged := "yes"
		switch {
		case c.Action() == job.RetryNever:
			charged = "-"
		case !c.Charged():
			charged = "no"
		}
		fmt.Fprintf(out, "| [`%s`](#%s) | %s | `%s` | %s |\n", c, c, c.Fault(), c.Action(), charged)
	}
	fmt.Fprint(out, strings.ReplaceAll(limits, "´", "`"))
	for _, c := range job.Categories() {
		fmt.Fprintf(out, "\n## %s\n\n%s\n", c, meanings[c])
		if list := signatures(c); len(list) > 0 {
			fmt.Fprint(out, "\n| signature | meaning |\n|---|---|\n")
			for _, r := range list {
				echo := ""
				if r.Is(rule.Cascade) {
					echo = " (*echo*)"
				}
				fmt.Fprintf(out, "| `%s` | %s%s |\n", r.Signature, strings.ReplaceAll(r.Meaning, "|", `\|`), echo)
			}
		}
	}
	return out.Flush()
}

// signatures returns the rules of a category that have a meaning, in the order of the files, and then those of Endings.
func signatures(c job.Category) []rule.Rule {
	var list []rule.Rule
	for _, r := range written() {
		if r.Category == c && r.Meaning != "" {
			list = append(list, *r)
		}
	}
	for _, end := range []job.Ended{job.EndedTimeLimit, job.EndedCancelled, job.EndedBatchLimit, job.EndedPreempted, job.EndedNodeFailed} {
		if r := Endings[end]; r.Category == c {
			list = append(list, r)
		}
	}
	return list
}
