package diagnose

import "github.com/gangrun/gangrun/internal/job"

var hostLost = []Rule{{
	Category: job.HostLost, Signature: "host-silent", Confidence: 1,
	Meaning: "a host stopped answering while ranks ran on it",
	Hint:    "the host, its network or gangrun's agent on it is gone: look at it before it is used again",
	Text:    "lost: ${title}", Statuses: []job.ExitStatus{job.Lost},
}, {
	Category: job.HostLost, Signature: "node-failure", Confidence: 0.95,
	Meaning: "the batch system says that a node failed",
	Hint:    "leave that node out; its administrators will want to know",
	Needles: []string{"due to node failure", "srun: error: node failure on", "node failure"},
	Match:   re(`(?:Node failure on |ON )(?P<host>[\w.-]+)|(?i)node failure`),
}}
