package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// These rules are for ends that do not show a reason, and for those that gangrun or the batch
// system has caused.
var unknown = []Rule{{
	Category: job.TimeLimit, Signature: "cpu-time-limit", Confidence: 0.95,
	Meaning: "the process used up the CPU time that it is allowed",
	Hint:    "raise the limit (ulimit -t)",
	Text:    "ended by ${signal}: it used up the CPU time that it is allowed", Ends: Ends{Signals: []int{24}},
}, {
	Category: job.TimeLimit, Signature: "batch-time-limit", Confidence: 0.95,
	Meaning: "the batch system's time limit ended the job",
	Hint:    "ask for more time, or resume from the last checkpoint in a new job",
	Needles: []string{"due to time limit", "application timed out", "user-provided time limit", "job killed: walltime", "walltime exceeded"},
	Match:   textmatch.New(`DUE TO TIME LIMIT|APPLICATION TIMED OUT|user-provided time limit|(?i)walltime`),
}, {
	Category: job.Cancelled, Signature: "batch-cancelled", Confidence: 0.7, Traits: Weak | Generic,
	Meaning: "the batch system cancelled the job or step",
	Hint:    "somebody or a rule cancelled it (scancel); a step is also cancelled after one of its tasks failed",
	Needles: []string{"slurmstepd: error: *** "},
	Match:   textmatch.New(`CANCELLED AT \S+ \*\*\*`),
}, {
	Category: job.Unknown, Signature: "exit-code", Confidence: 0.3, Traits: Generic | Mute,
	Meaning: "the rank ended with a code that is not 0 and printed no reason",
	Hint:    "read the rank's last lines; let the program say why it ends",
	Text:    "ended with code ${code}${silence}",
	Ends:    Ends{Statuses: []job.ExitStatus{job.Exited}},
}}
