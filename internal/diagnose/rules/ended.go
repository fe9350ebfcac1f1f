package rules

import "github.com/gangrun/gangrun/internal/job"

// Endings are the rules for gangs that gangrun ended.
var Endings = map[job.Ended]Rule{
	job.EndedTimeLimit: {Category: job.TimeLimit, Signature: "time-limit", Meaning: "the run's own time limit (--timeout) passed",
		Text: "the run's time limit passed, and gangrun ended the gang", Hint: "raise --timeout"},
	job.EndedCancelled: {Category: job.Cancelled, Signature: "cancelled", Meaning: "the user ended the run",
		Text: "the run was cancelled, and gangrun ended the gang", Hint: "run it again; with --checkpoint-dir and --resume it goes on from its newest checkpoint"},
}
