package exitcode

import "github.com/gangrun/gangrun/internal/job"

// ownEnding is an ending that gangrun itself decides, and that does not follow from the end of a rank.
type ownEnding struct {
	doc    string
	ending Ending
}

// ownEndings has all such endings. docs/exit-codes.md lists what Of returns for each. TestOwnEndings has what
// Of must return.
var ownEndings = []ownEnding{
	{"gangrun cannot make a directory that it needs, such as that for the records of the run, or cannot start its own processes.", Ending{State: job.StateFailed, Internal: true}},
	{"A file system that gangrun itself needs is full or fails before or after the gang, or a file system with the job's files does not answer.", Ending{State: job.StateFailed, Storage: true}},
	{"The gang would not fit even if every slot and GPU of its hosts were free.", Ending{State: job.StateNoPlacement, Never: true}},
	{"The gang does not fit because some GPUs are faulty, or because some hosts could not report their GPUs.", Ending{State: job.StateNoPlacement}},
	{"The GPUs that the gang needs are in use and do not become free in time.", Ending{State: job.StateNoPlacement}},
	{"The gang needs hosts that gangrun cannot reach: connection refused, no route, no answer, a name without an address, no room to install gangrun.", Ending{State: job.StateNoPlacement}},
	{"The same, but the reason is the login on all of these hosts: they refuse the user, their host key is unknown or has changed, or gangrun does not support their ssh_config.", Ending{State: job.StateNoPlacement, Never: true}},
	{"gangrun finds no network over which all hosts reach each other, or several names of the list are one machine.", Ending{State: job.StateNoPlacement, Never: true}},
	{"`gangrun preflight`: a host is not reached, or is lost.", refusedBy(job.HostLost, job.RetryAgain)},
	{"`gangrun preflight`: the login on a host fails: the host refuses the user, its key is unknown or has changed, or gangrun does not support its ssh_config.", refusedBy(job.HostLost, job.RetryNever)},
	{"The preflight finds that a file system fails.", refusedBy(job.StorageError, job.RetryAgain)},
	{"The preflight finds an error of the network: hosts cannot connect to each other, or cannot reach the registry of an image.", refusedBy(job.NetworkError, job.RetryAgain)},
	{"The preflight, or its trial, finds an error in the job's inputs: paths, data, the checkpoint directory.", refusedBy(job.IncorrectInputs, job.RetryNever)},
	{"The preflight, or its trial, finds an error in the job's program, libraries or environment.", refusedBy(job.SemanticError, job.RetryNever)},
	{"The same job has failed before because of its inputs or its code, has not changed since, and has `refuse-known`.", refusedAgain()},
	{"The preflight finds an error whose cause is not known.", Ending{State: job.StatePreflightFailed, Finding: &job.Finding{Check: "program"}}},
	{"No place is found for another attempt.", Ending{State: job.StateFailed, Budget: true}},
	{"The gang loses the lease of its GPUs, and the retries are used up.", Ending{State: job.StateFailed, Cause: &job.Cause{Category: job.LaunchError, Rank: -1}, Action: job.RetryAgain}},
	{"The time limit is reached, and the next run would start from the beginning.", Ending{State: job.StateFailed, TimeLimit: true}},
	{"The time limit is reached, and the next run resumes from a checkpoint that this one has written.", Ending{State: job.StateFailed, TimeLimit: true, Saved: true, Resume: true}},
	{"The batch system preempts the job, queues it again, or ends it because a node failed.", Ending{State: job.StateFailed, HostsTaken: true}},
	{"gangrun ends the gang early because the loss is NaN or has diverged, because the loss has never fallen, or because the job will miss its target.", Ending{State: job.StateStoppedEarly, Saved: true}},
	{"gangrun ends the gang early because the run has reached its target or no longer improves, and the run has written no good checkpoint after that verdict became true.", Ending{State: job.StateStoppedEarly, Worth: true}},
	{"gangrun ends the gang early because the run has reached its target or no longer improves, and the run has written a good checkpoint after that verdict became true.", Ending{State: job.StateStoppedEarly, Worth: true, Saved: true}},
	{"The run is cancelled by SIGTERM.", Ending{State: job.StateCancelled, Signal: 15}},
}

// refusedAgain returns the ending of a job that is refused because it has failed before.
func refusedAgain() Ending {
	e := refusedBy(job.SemanticError, job.RetryNever)
	e.Finding.Check = knownCheck
	return e
}

// refusedBy returns the ending of a run whose preflight found an error of that category.
func refusedBy(category job.Category, action job.Action) Ending {
	cause := job.Cause{Category: category, Rank: -1, Retry: action}
	return Ending{State: job.StatePreflightFailed, Action: action, Finding: &job.Finding{Severity: job.SeverityError, Cause: &cause}}
}
