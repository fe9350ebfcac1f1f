package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var diskFull = []Rule{{
	Category: job.DiskFull, Signature: "log-unwritten", Confidence: 1,
	Meaning: "the ranks ended well, but gangrun could not write their output to the logs",
	Hint:    "free space where the logs are: on other hosts that is the agent's directory in /tmp, here the run's (GANGRUN_HOME)",
	Text:    "${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Exited}, Reasons: []job.Reason{job.ReasonLogWriteFailed}},
	Unless: otherRefusals,
}, {
	Category: job.DiskFull, Signature: "no-space", Confidence: 0.95,
	Meaning: "the file system that the job writes to is full",
	Hint:    "free space or inodes on that file system (df -h, df -i) or write elsewhere; keep fewer checkpoints; /tmp and caches may be what is full",
	Needles: []string{"no space left on device", "not enough free disk space", "enough disk space", "database or disk is full", "enospc", "disk is full", "disk full", "not enough space", "insufficient disk space", "out of disk space", "cannot write: no space", "filesystem full", "file system is full"},
	Unless:  textmatch.New(`(?i)</torch|will be (?:deleted|removed)|warn(?:ing)?:.*below`),
	Find:    textmatch.New(`device: ['"](?P<artefact>[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: [Nn]o space`),
}, refused(job.DiskFull, "no-space", "free space or inodes there (df -h and df -i tell which is used up), or set GANGRUN_HOME and TMPDIR to directories elsewhere", "no space left on device"), {
	Category: job.DiskFull, Signature: "disk-quota", Confidence: 0.95,
	Meaning: "the user's quota on the file system is used up",
	Hint:    "free space (quota -s shows how much is yours) or write elsewhere",
	Needles: []string{"disk quota exceeded", "quota exceeded", "edquot", "exceeded your quota", "over quota", "storage quota"},
	Match:   textmatch.New(`EDQUOT|exceeded your (?:\w+ )?quota|over (?:disk )?quota|storage quota|(?i)(?:disk|group|user|block|inode|project|directory) quota (?:\w+ )?exceeded(?:: ['"](?P<artefact>[^'"]+)['"])?`),
}, refused(job.DiskFull, "disk-quota", "free space (quota -s shows how much is yours) or write elsewhere", "disk quota exceeded"), {
	Category: job.DiskFull, Signature: "dataloader-shm", Confidence: 0.9,
	Meaning: "the shared memory (/dev/shm) is full: data workers, NCCL or MPI keep their buffers there",
	Hint:    "give the container or host more shared memory (--shm-size, --container-shm, --ipc=host), or use fewer workers",
	Needles: []string{"out of shared memory", "unable to write to file </torch", "killed by signal: bus error", "unable to allocate shared memory", "unexpected bus error encountered in worker", "/dev/shm"},
	Match:   textmatch.New(`(?i)out of shared memory|unable to write to file </torch|killed by signal: bus error|unexpected bus error encountered in worker|unable to allocate shared memory|failed to extend /dev/shm|/dev/shm.*(?:no space|full\b|too small|insufficient)|(?:no space|insufficient).*/dev/shm|100% /dev/shm`),
	Unless:  textmatch.New(`CUDA|triton|Too many open files`),
}, {
	Category: job.DiskFull, Signature: "evicted-storage", Confidence: 0.9, Traits: Verdict,
	Meaning: "Kubernetes evicted the pod because the disk of its node was full",
	Hint:    "write less to the container's own file system, or ask for more ephemeral storage (resources.limits.ephemeral-storage)",
	Needles: []string{"low on resource: ephemeral-storage", "ephemeral local storage usage exceeds", "usage of emptydir volume"},
}}

// otherRefusals are reasons other than space for which a file system accepts no more bytes.
var otherRefusals = textmatch.New(`(?i)file too large|read-only file system|input/output error|stale (?:NFS )?file handle|disk quota exceeded`)

// ownWords match faults that have their own rule, whatever the reason.
var ownWords = textmatch.New(`(?i)^(?:the working directory "|chdir /)`)

// refused returns the rule for ranks that could not be started, that were lost, or of
// which not all output was kept, because a file system refused something to gangrun
// itself, for the reason that the operating system names.
func refused(category job.Category, signature, hint string, reasons ...string) Rule {
	return Rule{
		Category: category, Signature: signature, Confidence: 1, Hint: hint,
		Text: "${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted, job.Lost, job.Exited}},
		Needles: reasons, Find: textmatch.New(`(?:^|[\s"'(])(?P<artefact>/[^\s"':]+)["']?: `),
		Unless: ownWords,
	}
}
