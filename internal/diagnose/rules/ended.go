package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

// Endings has the rules for gangs that gangrun has ended.
var Endings = map[job.Ended]rule.Rule{
	job.EndedTimeLimit: {Category: job.TimeLimit, Signature: "time-limit", Meaning: "the run's own time limit (--timeout) passed",
		Text: "the run's time limit passed, and gangrun ended the gang", Hint: "raise --timeout"},
	job.EndedCancelled: {Category: job.Cancelled, Signature: "cancelled", Meaning: "the user ended the run",
		Text: "the run was cancelled, and gangrun ended the gang", Hint: "run it again; with --checkpoint-dir and --resume it goes on from its newest checkpoint"},
	job.EndedBatchLimit: {Category: job.TimeLimit, Signature: "job-time-limit", Meaning: "the time limit of the batch job passed, or was about to",
		Text: "the batch job's time was up, and gangrun ended the gang", Hint: "submit the job with a longer time limit, or with --checkpoint-dir and --requeue"},
	job.EndedPreempted: {Category: job.Preempted, Signature: "batch-preempted", Meaning: "the batch system preempted the job or queued it again",
		Text: "the batch system took the job's hosts away, and gangrun ended the gang", Hint: "run it again; with --checkpoint-dir and --resume it goes on from its newest checkpoint"},
	job.EndedNodeFailed: {Category: job.HostLost, Signature: "batch-node-failed", Meaning: "the batch system ended the job because a node failed",
		Text: "a node failed, so the batch system ended the job", Hint: "submit the job with --no-kill: then the run continues without the node"},
}
