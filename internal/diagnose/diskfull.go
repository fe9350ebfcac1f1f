package diagnose

import "github.com/gangrun/gangrun/internal/job"

var diskFull = []Rule{{
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
