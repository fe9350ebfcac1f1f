package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var diskFull = []rule.Rule{{
	Category: job.DiskFull, Signature: "log-unwritten", Confidence: 1,
	Meaning: "the ranks ended well, but gangrun could not write their output to the logs",
	Hint:    "free space where the logs are: on other hosts that is the agent's directory in /tmp, here the run's (GANGRUN_HOME)",
	Text:    "${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Exited}, Reasons: []job.Reason{job.ReasonLogWriteFailed}},
	Unless: otherRefusals,
}, {
	Category: job.DiskFull, Signature: "no-space", Confidence: 0.95,
	Meaning: "the file system that the job writes to is full",
	Hint:    "free space or inodes on that file system (df -h, df -i) or write elsewhere; keep fewer checkpoints; /tmp and caches may be what is full",
	Needles: []string{"no space left on device", "not enough free disk space", "enough disk space", "database or disk is full", "enospc", "disk is full", "disk full", "not enough space", "insufficient disk space", "out of disk space", "cannot write: no space", "filesystem full", "file system is full", "no space left on disk", "insufficient free space", "insufficient space", "sqlite_full", "mpi_err_no_space", "no space available in any of the local directories", "could not find any valid local directory", "block limit reached", "storage limit reached", "over disk limit", "exceeded request_disk", "nospacelefterror", "outofdiskerror", "device full", "disk is out of space", "low on disk space", "run out of disk", "ran out of disk", "cannot create temp file for here-document"},
	Unless:  textmatch.New(`(?i)</torch|maybe you are out of disk space|will be (?:deleted|removed)|warn(?:ing)?:.*below|file watchers|inotify|\b(?:cache[sd]?|memory|buffer|queue|ring|pool|heap|stack|KV|vocabulary|line|screen|terminal)\b.{0,40}$|(?:is|are|has|have|find|found|with) enough|(?:make sure|ensure|check\w*|verify\w*|need) .{0,30}enough|enough disk space (?:available|found|: ?(?:yes|ok|true))|UserWarning|if (?:the |your )?(?:disk|file ?system)|insufficient space (?:for|between) (?:label|legend|title|text|axis)|\blimits?: |enough space (?:for the (?:label|legend|title|text|axis|plot)|to (?:display|show|draw|print|plot))|disk full(?: check|: ?\d)|is full of`),
	Find:    textmatch.New(`device: ['"](?P<artefact>[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: [Nn]o space`),
}, refused(job.DiskFull, "no-space", "free space or inodes there (df -h and df -i tell which is used up), or set GANGRUN_HOME and TMPDIR to directories elsewhere", "no space left on device"), {
	Category: job.DiskFull, Signature: "disk-quota", Confidence: 0.95,
	Meaning: "the user's quota on the file system is used up",
	Hint:    "free space (quota -s shows how much is yours) or write elsewhere",
	Needles: []string{"disk quota exceeded", "quota exceeded", "edquot", "exceeded your quota", "over quota", "storage quota", "exceed quota", "exceeds quota", "dsquotaexceeded", "nsquotaexceeded", "diskspace quota", "quota of ", "mpi_err_quota", "quotaexceeded", "quota limit", "over hard limit"},
	Match:   textmatch.New(`EDQUOT|MPI_ERR_QUOTA|\bquota\b.{0,60}\bover hard limit|exceeded your (?:disk|storage|home|file|group|user|block|inode) quota|over (?:disk )?quota|storage quota (?:\w+ )?(?:exceeded|reached|full)|[ND]SQuotaExceeded|(?:DiskSpace|NameSpace) quota \S* ?.*is exceeded|QuotaExceeded(?:Error|Exception)\b|: Quota exceeded$|\[Errno 122\]|(?:would|will) exceed (?:\w+ )?quota|quota limit (?:exceeded|reached)|(?i)(?:disk|group|user|block|inode|project|directory) quota (?:\w+ )?exceeded(?:: ['"](?P<artefact>[^'"]+)['"])?`),
}, refused(job.DiskFull, "disk-quota", "free space (quota -s shows how much is yours) or write elsewhere", "disk quota exceeded"), {
	Category: job.DiskFull, Signature: "dataloader-shm", Confidence: 0.9,
	Meaning: "the shared memory (/dev/shm) is full: data workers, NCCL or MPI keep their buffers there",
	Hint:    "give the container or host more shared memory (--shm-size, --ipc=host), or use fewer workers",
	Needles: []string{"out of shared memory", "unable to write to file </torch", "killed by signal: bus error", "unable to allocate shared memory", "unexpected bus error encountered in worker", "/dev/shm", "error while creating shared memory segment"},
	Match:   textmatch.New(`(?i)out of shared memory|unable to write to file </torch|killed by signal: bus error|unexpected bus error encountered in worker|unable to allocate shared memory|failed to extend /dev/shm|/dev/shm.*(?:no space|full\b|too small|insufficient)|(?:no space|insufficient).*/dev/shm|100% /dev/shm|error while creating shared memory segment /dev/shm`),
	Unless:  textmatch.New(`CUDA|triton|Too many open files`),
}, {
	Category: job.DiskFull, Signature: "evicted-storage", Confidence: 0.9, Traits: rule.Verdict,
	Meaning: "Kubernetes evicted the pod because the disk of its node was full",
	Hint:    "write less to the container's own file system, or ask for more ephemeral storage (resources.limits.ephemeral-storage)",
	Needles: []string{"low on resource: ephemeral-storage", "ephemeral local storage usage exceeds", "usage of emptydir volume", "diskpressure", "out of disk"},
	Match:   textmatch.New(`low on resource: ephemeral-storage|ephemeral local storage usage exceeds|Usage of EmptyDir volume|[Ee]victed.*(?:DiskPressure|ephemeral-storage)|node had condition: \[DiskPressure\]|OutOfDisk\b`),
}, {
	Category: job.DiskFull, Signature: "upload-failed", Confidence: 0.7,
	Meaning: "scp or sftp could not write the file at the other end, mostly because the disk there is full",
	Hint:    "look at the space and quota where ${artefact|the file} goes",
	Needles: []string{"write remote ", "write to remote file"},
	Match:   textmatch.New(`(?:scp|sftp): write remote "(?P<artefact>[^"]+)": Failure|[Cc]ouldn't write to remote file "(?P<artefact>[^"]+)": Failure`),
}, {
	Category: job.DiskFull, Signature: "database-full", Confidence: 0.9,
	Meaning: "a database reached the size that it may have (LMDB: map_size)",
	Hint:    "open the database with a larger map_size, or start a new one",
	Needles: []string{"mdb_map_full", "environment mapsize limit reached"},
}}

// otherRefusals matches reasons other than a lack of space for which a file system accepts no more bytes.
var otherRefusals = textmatch.New(`(?i)file too large|read-only file system|input/output error|stale (?:NFS )?file handle|disk quota exceeded`)

// ownWords matches faults that have a rule of their own, whatever the reason.
var ownWords = textmatch.New(`(?i)^(?:the working directory "|chdir /)`)

// refused returns a rule for a file system that refused something to gangrun itself, for one of the operating system's
// reasons. Ranks could then not be started, were lost, or not all of their output was kept.
func refused(category job.Category, signature, hint string, reasons ...string) rule.Rule {
	return rule.Rule{
		Category: category, Signature: signature, Confidence: 1, Hint: hint,
		Text: "${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted, job.Lost, job.Exited}},
		Needles: reasons, Find: textmatch.New(`(?:^|[\s"'(])(?P<artefact>/[^\s"':]+)["']?: `),
		Unless: ownWords,
	}
}
