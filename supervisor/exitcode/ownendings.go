package exitcode

import "github.com/gangrun/gangrun/internal/job"

// ownEnding is an ending that gangrun itself decides, before, beside or after its gang: it
// does not follow from the end of a rank.
type ownEnding struct {
	doc    string
	ending Ending
}

// ownEndings lists them all. Of decides each; docs/exit-codes.md lists the results, and
// TestOwnEndings what they must be.
var ownEndings = []ownEnding{
	{"A directory of gangrun's own, such as that for the run's records, cannot be made, or gangrun cannot start its own parts.", Ending{State: job.StateFailed, Internal: true}},
	{"A file system is full, or one with the job's files does not answer, when gangrun itself needs it.", Ending{State: job.StateFailed, Storage: true}},
	{"The gang would not fit if every slot and GPU of its hosts were free.", Ending{State: job.StateNoPlacement, Never: true}},
	{"The gang would not fit since some of the GPUs are sick, or not all hosts could be asked for theirs.", Ending{State: job.StateNoPlacement}},
	{"The GPUs that the gang needs are in use, and do not become free in time.", Ending{State: job.StateNoPlacement}},
	{"The gang would fit if hosts were there that cannot be reached: connection refused, no route, no answer, a name without an address, no room for gangrun there.", Ending{State: job.StateNoPlacement}},
	{"The same, but all of these hosts refuse by policy: they do not let the user in, their host key is not known or another one, or ssh_config cannot be followed.", Ending{State: job.StateNoPlacement, Never: true}},
	{"The hosts have no network in common, or several names of the list are one machine.", Ending{State: job.StateNoPlacement, Never: true}},
	{"`gangrun preflight`: a host is not reached, or is lost.", refusedBy(job.HostLost, job.RetryAgain)},
	{"`gangrun preflight`: a host refuses by policy.", refusedBy(job.HostLost, job.RetryNever)},
	{"The preflight, or its trial, finds a fault that may pass: storage, network, a lost host.", refusedBy(job.StorageError, job.RetryAgain)},
	{"The preflight, or its trial, finds a fault of the job's inputs, program or environment.", refusedBy(job.SemanticError, job.RetryNever)},
	{"The preflight finds a fault of which no cause is known.", Ending{State: job.StatePreflightFailed, Finding: &job.Finding{Check: "program"}}},
	{"No place is found for another attempt.", Ending{State: job.StateFailed, Budget: true}},
	{"The lease of the gang's GPUs is lost, and the restarts are spent.", Ending{State: job.StateFailed, Cause: &job.Cause{Category: job.LaunchError, Rank: -1}, Action: job.RetryAgain}},
	{"The time limit is reached, and the next run would start afresh.", Ending{State: job.StateFailed, TimeLimit: true}},
	{"The time limit is reached, and the next run resumes from a checkpoint that this one left.", Ending{State: job.StateFailed, TimeLimit: true, Saved: true, Resume: true}},
	{"gangrun ends the gang early on purpose, and no good checkpoint is left.", Ending{State: job.StateStoppedEarly}},
	{"gangrun ends the gang early on purpose, and a good checkpoint is left.", Ending{State: job.StateStoppedEarly, Saved: true}},
	{"The run is cancelled by SIGTERM.", Ending{State: job.StateCancelled, Signal: 15}},
}

// refusedBy is the end of a run whose preflight failed for a cause.
func refusedBy(category job.Category, action job.Action) Ending {
	cause := job.Cause{Category: category, Rank: -1, Retry: action}
	return Ending{State: job.StatePreflightFailed, Action: action, Finding: &job.Finding{Severity: job.SeverityError, Cause: &cause}}
}
