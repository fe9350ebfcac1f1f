package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var preempted = []rule.Rule{{
	Category: job.Preempted, Signature: "slurm-preempted", Confidence: 0.95, Traits: rule.Verdict,
	Meaning: "the scheduler or cloud took the resources back for something more important",
	Hint:    "run it again: with --checkpoint-dir and --resume it goes on from its newest checkpoint",
	Needles: []string{"due to preemption", "due to job requeue", "spot instance interruption", "spot interruption", "preempted", "preemption notice", "preempting", "instance is being preempted", "term_preempt", "term_requeue", "disruptiontarget", "spot termination", "instance-action", "preemptionbyscheduler", "preemption by scheduler",
		"interruption notice", "interruption warning", "rebalance recommendation", "spot reclaim", "reclaimed", "host ec2", "scheduledevents", "maintenance event", "spot-itn", "being evicted by", "job requeued", "requeue_hold", "preemptible", "preempt for", "scheduled for host maintenance", "host_maintenance", "host maintenance", "spot capacity", "spot itn", "spot training interrupt", "spot reclaimed", "managed spot", "because of a maintenance", "imminent node shutdown", "node shutdown", "preempted to accommodate", "evictedby", "evicted by", "evicted due to", "evicted because", "type=preempt", "clusterqueue", "capacity reclaimed", "higher priority", "higher-priority", "reclaim", "bumped by", "stockout", "preemption", "out of spot", "evictiontype", "instance/preempted", "deallocated", "job was evicted", "job vacated", "vacating", "besteffort", "claim was preempted", "two-minute warning", "2-minute warning", "spot ", "eventtype\":\"preempt", "eventtype\": \"preempt"},
	Match: textmatch.New(`DUE TO PREEMPTION|DUE TO JOB REQUEUE|^004 \(\S+ .*Job was evicted|[Jj]ob (?:was )?(?:evicted|vacated)(?: by|\.?$)|BESTEFFORT_KILL|TERM_PREEMPT|TERM_REQUEUE|(?i)\bspot itn received|\b(?:spot|instance|node|vm|host)\b.{0,60}\b(?:interruption|terminat\w+|reclaim\w*|preempt\w*|evict\w*|maintenance)\b.{0,40}(?:notice|warning|signal|received|detected|scheduled|soon|by|in \d)|\bpreempted\b.{0,40}\bby\b|was preempted|\bPreempted\b|is being preempted|been preempted|preemption (?:notice|signal|event|warning|by|detected|received|request)|` +
		`received preemption|spot (?:instance )?interruption|DisruptionTarget|PreemptionByScheduler|PreemptScheduled|\bPreempt\b|instance-action|host ec2 \(instance [\w-]+\) terminated|job (?:was )?requeued|ReclaimedBy|reclaimed by|scheduled event: preempt|(?:host|node|vm|instance) .{0,40}(?:scheduled for|because of|due to) (?:a )?(?:host )?maintenance|evicted (?:because of|due to|for|by) (?:a |the )?(?:\w+ )?(?:maintenance|spot|preempt|reclaim|higher)|TERMINATE_ON_HOST_MAINTENANCE|spot (?:capacity|instances?|vms?|node\w*) (?:was |were |is |are )?(?:reclaim|interrupt|evict|terminat|lost)|managed spot training interrupted|imminent node shutdown|evicted by \w*(?:kueue|scheduler|autoscaler|volcano)|Evicted by kueue|EvictedDueToPreempted|(?:preempt|evict|suspend|requeu|kill|stop)\w* .{0,60}higher[- ]priority|type=preempt\b|"EventType": ?"Preempt"|instance/preempted\W{0,3}TRUE|EvictionType|\bspot\b.{0,60}\b(?:warning|notice|deallocat\w*|being (?:stopped|reclaimed|terminated))`),
	Unless: textmatch.New(`(?i)\bno preempt|not preempt|preempted (?:queries|requests|sequence|task by cuda)|preemption (?:mode|handler|is|support|checkpoint\w* enabled|polic\w+|mechanism|rate|count|guard)|\bPREEMPT_(?:DYNAMIC|RT|VOLUNTARY)|sequence group|preemptible ?=|is preemptible|(?:checking|listening|watching|polling|waiting) for|will (?:checkpoint|save)|(?:previous|last) (?:run|attempt|job)|\bresum(?:e|ing|ed)\b|preemption: \d+/\d+ nodes|installed|FailedScheduling|lower[- ]priority|failed, got preempted, or`),
}, {
	Category: job.Preempted, Signature: "node-shutdown", Confidence: 0.9, Traits: rule.Verdict,
	Meaning: "Kubernetes shut down the node or drained it, as it does before a spot instance ends",
	Hint:    "run it again: with --checkpoint-dir and --resume it goes on from its newest checkpoint",
	Needles: []string{"node is shutting down, evicting pods", "nodeshutdown", "evicted by eviction api", "evictionbyevictionapi", "marking for deletion pod", "deletionbytaintmanager", "taintmanagereviction", "scaledown", "terminationbykubelet"},
	Match:   textmatch.New(`Node is shutting down, evicting pods|\bNodeShutdown\b|EvictionByEvictionAPI|\bTaintManagerEviction\b|DeletionByTaintManager|\bScaleDown\b.*\bpods?/|TerminationByKubelet`),
	Unless:  textmatch.New(`(?i)cancel\w* deletion|NoScaleDown`),
}}
