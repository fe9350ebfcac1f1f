// Package exitcode decides the exit code of a run that has ended.
package exitcode

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// The exit codes of gangrun itself. Codes 64 to 78 have the meaning that they have in sysexits.h. Code 124 has
// the meaning that it has for timeout(1), and code 93 the meaning that it has for NVIDIA's resiliency
// extension.
const (
	OK          = 0
	Failed      = 1
	Usage       = 64
	Inputs      = 65
	NoPlacement = 69
	Internal    = 70
	MayPass     = 75
	Environment = 78
	NoRequeue   = 93
	TimeLimit   = 124
	Aborted     = 255
)

// WhyStorage is the explanation of the exit code MayPass if a file system caused the failure.
const WhyStorage = "a file system was full or did not answer"

// Ending is everything that the exit code of a run depends on.
type Ending struct {
	State job.State
	// Finding is the first error of a failed preflight.
	Finding *job.Finding
	// Cause is why the last attempt failed; nil if no attempt failed. Exits are the exits of the last attempt.
	// Budget is true if the run stopped after that attempt because its retries were used up.
	Cause  *job.Cause
	Exits  []job.Exit
	Budget bool
	// Action is the action of the job's policy for Cause or for the Cause of Finding. It is empty if Cause is nil and
	// Finding has no Cause.
	Action job.Action
	// Signal is the signal that cancelled the run.
	Signal int
	// Worth is true if gangrun stopped the run early because it had reached its target, or because its model no
	// longer improved.
	Worth bool
	// TimeLimit is true if the run reached its time limit.
	TimeLimit bool
	// Internal is true if gangrun itself failed.
	Internal bool
	// Storage is true if gangrun itself needed a file system that was full or did not answer.
	Storage bool
	// Never is true if the gang will not fit at any later time.
	Never bool
	// HostsTaken is true if the batch system has preempted the job, queued it again, or ended
	// it because a node failed.
	HostsTaken bool
	// Saved is true if the run has written a good checkpoint. After an early stop, only checkpoints that were
	// written after the verdict became true count. Resume is true if the next run of the job starts from the
	// newest good checkpoint.
	Saved, Resume bool
}

// exitRule is one line of the table of exit codes. match returns the code and its meaning. ok is false if the
// line does not apply.
type exitRule struct {
	codes string // as documented
	doc   string
	mode  job.ExitMode // empty for every mode
	match func(Ending) (code int, why string, ok bool)
}

// exitRules has the rules in the order in which they are tried. The last one applies to every ending.
var exitRules = []exitRule{
	{codes: "0", doc: "The job succeeded: every rank ended by itself with code 0, and the records of the run are complete.",
		match: fixed(OK, "success", func(e Ending) bool { return e.State == job.StateSucceeded })},
	{codes: "0", doc: "gangrun stopped the run early (`early-stop`) because the run had reached its target, or because it no longer improved (`plateau`), and the run has written a good checkpoint after that verdict became true. gangrun has found no NaN and no +Inf in that checkpoint. (A run that was cancelled while gangrun was stopping it counts as cancelled.)",
		match: fixed(OK, "stopped early with a good checkpoint", func(e Ending) bool { return e.State == job.StateStoppedEarly && e.Worth && e.Saved })},
	{codes: "130, 143, 129, 131", doc: "SIGINT, SIGTERM, SIGHUP or SIGQUIT cancelled the run, before or after its gang had started, or while gangrun was stopping it early: 128 + the number of the signal.",
		match: func(e Ending) (int, string, bool) {
			return 128 + e.Signal, "128 + " + job.SignalName(e.Signal), e.State == job.StateCancelled
		}},
	{codes: "64", doc: "Bad flags or a bad job file: nothing was started.", match: nil}, // the command line returns this code

	{mode: job.ExitVerdict, codes: "75", doc: "Running the job again may help: a retry may fix the cause; the retries were used up; there was no place for the gang in time, but there may be one later; or the time limit was reached, and the next run resumes (`resume`) from a checkpoint that this one has written.",
		match: fixed(MayPass, "running the job again may help", requeueHelps)},
	{mode: job.ExitVerdict, codes: "93", doc: "Running the job again does not help.",
		match: fixed(NoRequeue, "running the job again does not help", func(Ending) bool { return true })},

	{codes: "70", doc: "gangrun itself failed.",
		match: fixed(Internal, "gangrun itself failed", func(e Ending) bool { return e.Internal })},
	{codes: "75", doc: "gangrun could not write all records of the run: a file system was full, read-only or broken, or a file reached a limit on its size. Either every rank had ended well, or gangrun could not go on without these records. (If ranks were ended because their logs could not be written, the cause is `disk-full`, `output-error` or `storage-error`, and a line below has the code.) This is also the code if a file system with the job's files did not answer on the machine of the controller.",
		match: fixed(MayPass, WhyStorage, func(e Ending) bool { return e.Storage })},
	{codes: "69", doc: "gangrun found no hosts, slots or GPUs for the first attempt in time.",
		match: fixed(NoPlacement, "no place for the gang", func(e Ending) bool { return e.State == job.StateNoPlacement })},
	{codes: "75", doc: "`gangrun preflight` could not reach a host, or lost it. (If `gangrun run` loses a host in the trial, it only warns, and starts the gang.)",
		match: fixed(MayPass, "a host was lost or not reached in the preflight", func(e Ending) bool {
			return e.State == job.StatePreflightFailed && e.Finding != nil && e.Finding.Cause != nil && e.Finding.Cause.Category == job.HostLost
		})},
	{codes: "65", doc: "With `refuse-known`: the same job has failed before because of its inputs or its code, and has not changed since.",
		match: fixed(Inputs, "the job has failed before and has not changed", func(e Ending) bool {
			return e.State == job.StatePreflightFailed && e.Finding != nil && e.Finding.Check == knownCheck
		})},
	{codes: "65", doc: "The preflight found an error in the job's inputs: paths, data, the checkpoint directory. This is also the code if a file system failed or was full.",
		match: fixed(Inputs, "the preflight found a fault in the job's inputs", func(e Ending) bool {
			return e.State == job.StatePreflightFailed && aboutInputs(e.Finding)
		})},
	{codes: "78", doc: "The preflight found an error in the job's program, libraries or environment. This is also the code if hosts cannot connect to each other, or cannot reach the registry of an image.",
		match: fixed(Environment, "the preflight found a fault in the job's program or environment", func(e Ending) bool {
			return e.State == job.StatePreflightFailed
		})},
	{codes: "1", doc: "gangrun stopped the run early for another reason, such as a loss that is NaN or has diverged.",
		match: fixed(Failed, "stopped early because it went on in vain", func(e Ending) bool { return e.State == job.StateStoppedEarly && !e.Worth })},
	{codes: "1", doc: "gangrun stopped the run early because the run had reached its target or no longer improved, but the run has written no good checkpoint after that verdict became true.",
		match: fixed(Failed, "stopped early without a good checkpoint", func(e Ending) bool { return e.State == job.StateStoppedEarly })},
	{codes: "124", doc: "The time limit of the whole run (`timeout`), or that of its batch job, was reached. If gangrun was stopping the run early by then, the code is that of the early stop.",
		match: fixed(TimeLimit, "time limit", func(e Ending) bool { return e.TimeLimit })},
	{codes: "75", doc: "The batch system preempted the job, queued it again, or ended it because a node failed.",
		match: fixed(MayPass, "the batch system took the job's hosts away", func(e Ending) bool { return e.HostsTaken })},
	{codes: "255", doc: "The root-cause rank called MPI_Abort with a code that is 0 modulo 256.",
		match: func(e Ending) (int, string, bool) {
			x, ok := e.root()
			return Aborted, fmt.Sprintf("rank %d called MPI_Abort with a code that is 0 modulo 256", x.Rank), ok && x.Aborted && x.ShellCode() == 0
		}},
	{codes: "1 to 255", doc: "The code of the root-cause rank, with which the failure began: its exit code, or 128 + the number of the signal that ended it. It is 127 if the program is missing, and 126 if the program cannot be executed. If gangrun ended that rank, it is the code of the first rank that failed by itself.",
		match: func(e Ending) (int, string, bool) {
			x, ok := e.root()
			return x.ShellCode(), rankWhy(x), ok && x.ShellCode() != 0
		}},
	{codes: "1", doc: "The root-cause rank exited with code 0, but failed: it ended while the other ranks still needed it, it did not call MPI_Finalize, it was a silent singleton, or some of its output is missing.",
		match: func(e Ending) (int, string, bool) {
			x, ok := e.root()
			return Failed, fmt.Sprintf("rank %d exited with code 0, which is a failure here", x.Rank), ok && x.Status == job.Exited
		}},
	{codes: "70", doc: "No rank has a code, and the cause is a `launch-error` that is not retried: the ranks could not be started.",
		match: fixed(Internal, "the ranks could not be started", func(e Ending) bool { return e.is(job.LaunchError) && e.Action == job.RetryNever })},
	{codes: "75", doc: "No rank has a code, and either a retry may fix the cause (a lost host, a hang, the network, storage) or the retries were used up.",
		match: fixed(MayPass, "the cause may pass", func(e Ending) bool { return e.Budget || e.Action != "" && e.Action != job.RetryNever })},
	{codes: "1", doc: "The run failed in any other way.",
		match: fixed(Failed, "the run failed", func(Ending) bool { return true })},
}

// Of returns the exit code of a run that has ended, and what the code means.
func Of(e Ending, mode job.ExitMode) (code int, why string) {
	for _, rule := range exitRules {
		if rule.match == nil || rule.mode != "" && rule.mode != mode {
			continue
		}
		if code, why, ok := rule.match(e); ok {
			return code, why
		}
	}
	panic("the last exit rule applies to every ending")
}

func fixed(code int, why string, holds func(Ending) bool) func(Ending) (int, string, bool) {
	return func(e Ending) (int, string, bool) { return code, why, holds(e) }
}

func (e Ending) is(c job.Category) bool { return e.Cause != nil && e.Cause.Category == c }

// root returns the exit of the root-cause rank. If the cause names neither a rank nor a host,
// or if gangrun ended that rank, root returns the exit of the first rank that failed by itself.
func (e Ending) root() (job.Exit, bool) {
	if e.Cause == nil {
		return job.Exit{}, false
	}
	if e.Cause.Rank < 0 {
		if e.Cause.Host != "" {
			return job.Exit{}, false
		}
		return job.Outcome{Exits: e.Exits}.First()
	}
	i := slices.IndexFunc(e.Exits, func(x job.Exit) bool { return x.Rank == e.Cause.Rank })
	switch {
	case i < 0:
		return job.Exit{}, false
	case e.Exits[i].Stopped:
		return job.Outcome{Exits: e.Exits}.First()
	}
	return e.Exits[i], true
}

func rankWhy(x job.Exit) string {
	switch x.Status {
	case job.Signalled:
		return fmt.Sprintf("rank %d on %s: 128 + %s", x.Rank, x.Host, job.SignalName(x.Signal))
	case job.Unstarted:
		return fmt.Sprintf("rank %d on %s could not be started", x.Rank, x.Host)
	}
	return fmt.Sprintf("the code of rank %d on %s", x.Rank, x.Host)
}

// requeueHelps reports whether the job may succeed if a batch system runs it again.
func requeueHelps(e Ending) bool {
	switch {
	case e.Internal || e.State == job.StateStoppedEarly:
		return false
	case e.Storage || e.HostsTaken:
		return true
	case e.State == job.StateNoPlacement:
		return !e.Never
	case e.TimeLimit:
		return e.Saved && e.Resume
	}
	return e.Budget || e.Action == job.RetryAgain || e.Action == job.RetryElsewhere
}

// inputChecks has the beginnings of the codes of those preflight checks that look at paths, data and the
// checkpoint directory.
var inputChecks = []string{"input", "checkpoint", "trial-checkpoint", "workdir"}

// knownCheck is the code of the preflight check that refuses a job which has failed before and has
// not changed.
const knownCheck = "known-failure"

// aboutInputs reports whether a preflight error is about the job's inputs
// rather than its program and environment.
func aboutInputs(f *job.Finding) bool {
	if f == nil {
		return false
	}
	checked := slices.ContainsFunc(inputChecks, func(code string) bool { return strings.HasPrefix(f.Check, code) })
	if f.Cause == nil {
		return checked
	}
	switch f.Cause.Category {
	case job.IncorrectInputs, job.OutputError, job.DiskFull, job.StorageError, job.CheckpointError:
		return true
	case job.PermissionError:
		return checked
	}
	return false
}

// Document writes docs/exit-codes.md from the table that Of uses.
func Document(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Exit codes of gangrun run

The first line that applies gives the code. A failed job never ends with 0.
The report has the code and its meaning.

`)
	table := func(keep func(exitRule) bool) {
		b.WriteString("| code | when |\n| --- | --- |\n")
		for _, rule := range exitRules {
			if keep(rule) {
				fmt.Fprintf(&b, "| %s | %s |\n", rule.codes, rule.doc)
			}
		}
	}
	table(func(r exitRule) bool { return r.mode == "" })
	b.WriteString(`
## For batch systems: --exit-code=verdict

The codes for success (0), cancellation (128 + signal) and bad flags (64) stay the
same. In all other cases the code is 75 or 93, so that a batch script can decide with
one test whether to queue the job again:

`)
	table(func(r exitRule) bool { return r.mode == job.ExitVerdict })
	b.WriteString(`
The codes of runs that gangrun itself ended:

| ending | code | with --exit-code=verdict |
| --- | --- | --- |
`)
	for _, own := range ownEndings {
		rank, _ := Of(own.ending, job.ExitRank)
		verdict, _ := Of(own.ending, job.ExitVerdict)
		fmt.Fprintf(&b, "| %s | %d | %d |\n", own.doc, rank, verdict)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
