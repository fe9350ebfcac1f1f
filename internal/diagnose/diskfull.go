package diagnose

import "github.com/gangrun/gangrun/internal/job"

var diskFull = []Rule{{
	Category: job.DiskFull, Signature: "log-unwritten", Confidence: 1,
	Meaning: "the ranks ended well, but what they printed could not be written to its log",
	Hint:    "free space where the logs are: on other hosts that is the agent's directory in /tmp, here the run's (GANGRUN_HOME)",
	Text:    "${title}", Statuses: []job.ExitStatus{job.Exited},
	Needles: []string{"not all that it printed could be kept"},
}, {
	Category: job.DiskFull, Signature: "no-space", Confidence: 0.95,
	Meaning: "the file system that the job writes to is full",
	Hint:    "free space on that file system or write elsewhere; keep fewer checkpoints; /tmp and caches may be what is full",
	Needles: []string{"no space left on device", "not enough free disk space", "enough disk space"},
	Find:    re(`device: ['"](?P<artefact>[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: No space`),
}, {
	Category: job.DiskFull, Signature: "disk-quota", Confidence: 0.95,
	Meaning: "the user's quota on the file system is used up",
	Hint:    "free space (quota -s shows how much is yours) or write elsewhere",
	Needles: []string{"disk quota exceeded", "quota exceeded"},
	Match:   re(`[Dd]isk quota exceeded(?:: ['"](?P<artefact>[^'"]+)['"])?`),
}}
