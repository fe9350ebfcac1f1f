package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const cancelledHint = "somebody or a rule cancelled it (scancel, qdel, bkill, Ctrl-C); a step is also cancelled after one of its tasks failed"

var cancelled = []rule.Rule{{
	Category: job.Cancelled, Signature: "batch-cancelled", Confidence: 0.7, Traits: rule.Verdict | rule.Generic,
	Meaning: "the batch system cancelled the job or step",
	Hint:    cancelledHint,
	Needles: []string{" cancelled at ", "cancelled by user", "canceled by user", "cancelled by ", "term_owner", "killed by bkill", "terminated by user", "deleted by user", "cancelled by administrator", "job was aborted by the user", "via condor_rm", "user initiated",
		"failed: cancel", "ended: cancel", "status: cancel", "state: cancel", "was cancelled", "was canceled", "jobcancelled", "term_admin", "has been cancelled", "has been canceled", "job deleted", "qdel", "cancelled by uid", "state=cancelled", "cancelling", "canceling", "stopped by the user", "stopped by user", "stoptrainingjob", "intentionally stopped", "canceled by", "aborted by user", "deleted at request", "cancelled via", "type=cancel", "stopped on request", "kubectl delete", "aborted by the user", "killed by user", "by administrator", "externally set to", "deleted by", "killed by", "user requested", "user request", "manually stopped", "manually cancel", "manually terminat"},
	Match: textmatch.New(`\*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+ (?:\*\*\*|DUE to SIGNAL)|TERM_OWNER|TERM_ADMIN|killed by bkill|via condor_rm|(?i)\b(?:job|run|task|pod|workflow|step|training|execution|experiment|allocation|pipeline)\b.{0,60}\b(?:cancell?ed|terminated|deleted|aborted|removed|killed) (?:by|at the request of|on request of) (?:the )?(?:user|owner|admin\w*|operator|\w+@|request)|` +
		`\bcancell?ed by (?:user|owner|admin\w*|operator|request)|(?:job|run|pipeline|build|workflow|task) (?:was|has been|failed:|ended:|status:|state:) cancell?ed\b|^srun: (?:error: )?.*(?:job|step).*cancell?ed|deleted (?:by user|at request of)|(?:signal|SIGTERM|request)\b.{0,40}\bcancell?ing\b|(?:execution|run) was cancell?ed|(?:job|run|training|experiment|execution) .{0,40}(?:intentionally|manually) (?:stopped|cancell?ed|terminated)|stopped by (?:the )?user|StopTrainingJob|type=cancel\b|operation cancell?ed by user|cancelled by uid \d|CANCELLED AT \S+ BY \d|state=cancelled by|canceled by user|has been revoked|externally set to (?:failed|success|skipped)`),
	Unless: textmatch.New(`DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE|TASK FAILURE)|(?i)\b(?:future|coroutine|order|dependency|subscription|asyncio|download|upload|timer|context)\b|\brequest \S* ?(?:was |has been )?cancel`),
}, {
	Category: job.Cancelled, Signature: "batch-cancelled", Confidence: 0.85, Traits: rule.Verdict,
	Hint:    "somebody cancelled the pipeline, or a newer one for the same branch replaced it",
	Needles: []string{"the operation was cancel", "since a higher priority waiting request", "job failed: cancel"},
	// Of GitHub and GitLab.
	Match: textmatch.New(`##\[error\]The operation was cancell?ed|Cancell?ing since a higher priority waiting request|ERROR: Job failed: cancell?ed`),
}, {
	Category: job.Cancelled, Signature: "interrupted", Confidence: 0.7, Traits: rule.Cascade | rule.Generic,
	Meaning: "the user interrupted the program (Ctrl-C)",
	Hint:    cancelledHint,
	Classes: []string{"KeyboardInterrupt"},
}, {
	Category: job.Cancelled, Signature: "interrupted", Confidence: 0.7, Traits: rule.Verdict | rule.Generic,
	Hint:    cancelledHint,
	Needles: []string{"received 2 death signal", "detected keyboardinterrupt", "] interrupt", "received signal: 2", "got signal: 2", "sigint"},
	Match:   textmatch.New(`Received 2 death signal|got signal: 2\b|(?:received|caught|got) (?:signal )?SIGINT|SIGINT received|Detected KeyboardInterrupt|^g?make(?:\[\d+\])?: \*\*\* \[[^\]]*\] Interrupt$`),
}, {
	Category: job.Cancelled, Signature: "interrupted", Confidence: 0.8,
	Hint:    "run it again; with --checkpoint-dir and --resume it goes on from its newest checkpoint",
	Needles: []string{"srun: interrupt", "] interrupt", "sending ctrl-c to processes", "sending ctrl-c to job", "srun: aborting, interrupt", "hit ctrl-c again to forcibly", "press ctrl-c again to force abort"},
	Match:   textmatch.New(`srun: (?:sending Ctrl-C|interrupt|aborting)|Sending Ctrl-C to processes as requested|sending Ctrl-C to job|[Cc]trl-[Cc] again to forc|^make(?:\[\d+\])?: \*\*\* .*\] Interrupt$`),
}, {
	Category: job.Cancelled, Signature: "interrupted", Confidence: 0.7, Traits: rule.Verdict | rule.Generic,
	Hint:    cancelledHint,
	Needles: []string{"control-c detected", "ctrl-c detected", "interrupted by user", "ended by user", "stopped by user", "(qdel)", "killed by user", "detected keyboardinterrupt", "interrupt from keyboard"},
	Unless:  textmatch.New(`(?i)press (?:ctrl|control)-c`),
}}
