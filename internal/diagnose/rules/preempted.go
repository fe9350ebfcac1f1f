package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var preempted = []Rule{{
	Category: job.Preempted, Signature: "slurm-preempted", Confidence: 0.95, Traits: Verdict,
	Meaning: "the scheduler or cloud took the resources back for something more important",
	Hint:    "run it again: with --checkpoint-dir and --resume it goes on from its newest checkpoint",
	Needles: []string{"due to preemption", "due to job requeue", "spot instance interruption", "spot interruption", "preempted", "preemption notice", "preempting", "instance is being preempted", "term_preempt", "term_requeue", "disruptiontarget", "spot termination", "instance-action", "preemptionbyscheduler", "preemption by scheduler",
		"interruption notice", "interruption warning", "rebalance recommendation", "spot reclaim", "reclaimed", "host ec2", "scheduledevents", "maintenance event", "spot-itn", "being evicted by", "job requeued", "requeue_hold", "preemptible"},
	Match: textmatch.New(`DUE TO PREEMPTION|DUE TO JOB REQUEUE|TERM_PREEMPT|TERM_REQUEUE|(?i)\b(?:spot|instance|node|vm|host)\b.{0,60}\b(?:interruption|terminat\w+|reclaim\w*|preempt\w*|evict\w*|maintenance)\b.{0,40}(?:notice|warning|signal|received|detected|scheduled|soon|by|in \d)|\bpreempted\b.{0,40}\bby\b|was preempted|\bPreempted\b|is being preempted|been preempted|preemption (?:notice|signal|event|warning|by|detected|received|request)|` +
		`received preemption|spot (?:instance )?interruption|DisruptionTarget|PreemptionByScheduler|PreemptScheduled|\bPreempt\b|instance-action|host ec2 \(instance [\w-]+\) terminated|job (?:was )?requeued|ReclaimedBy|reclaimed by`),
	Unless: textmatch.New(`(?i)\bno preempt|not preempt|preempted (?:queries|requests|sequence|task by cuda)|preemption (?:mode|handler|is|support|checkpoint\w* enabled|polic\w+|mechanism|rate|count|guard)|\bPREEMPT_(?:DYNAMIC|RT|VOLUNTARY)|sequence group|preemptible ?=|is preemptible`),
}}
