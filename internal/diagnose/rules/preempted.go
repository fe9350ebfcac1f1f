package rules

import "github.com/gangrun/gangrun/internal/job"

var preempted = []Rule{{
	Category: job.Preempted, Signature: "slurm-preempted", Confidence: 0.95,
	Meaning: "the batch system or the cloud took the hosts for something else",
	Hint:    "nothing is wrong with the job: start it again with --resume, from its last checkpoint",
	Needles: []string{"due to preemption", "spot instance interruption", "spot interruption", "instance is being preempted", "preemption notice"},
}}
