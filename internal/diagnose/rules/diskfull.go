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
	Needles: []string{"no space left on device", "not enough free disk space", "enough disk space"},
	Find:    textmatch.New(`device: ['"](?P<artefact>[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: [Nn]o space`),
}, refused(job.DiskFull, "no-space", "free space or inodes there (df -h and df -i tell which is used up), or set GANGRUN_HOME and TMPDIR to directories elsewhere", "no space left on device"), {
	Category: job.DiskFull, Signature: "disk-quota", Confidence: 0.95,
	Meaning: "the user's quota on the file system is used up",
	Hint:    "free space (quota -s shows how much is yours) or write elsewhere",
	Needles: []string{"disk quota exceeded", "quota exceeded"},
	Match:   textmatch.New(`[Dd]isk quota exceeded(?:: ['"](?P<artefact>[^'"]+)['"])?`),
}, refused(job.DiskFull, "disk-quota", "free space (quota -s shows how much is yours) or write elsewhere", "disk quota exceeded")}

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
