package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var storageError = []Rule{{
	Category: job.StorageError, Signature: "io-error", Confidence: 0.9,
	Meaning: "reading or writing failed below the file system: a disk or a network file system",
	Hint:    "look at the host's kernel log and the file server; where only one host shows it, keep jobs off that host",
	Needles: []string{"input/output error", "remote i/o error", "lustreerror"},
	Match:   textmatch.New(`(?:[Ii]nput/output|[Rr]emote I/O) error(?:: ['"](?P<artefact>[^'"]+)['"])?|LustreError`),
}, refused(job.StorageError, "io-error", "look at the host's kernel log and the file server; where only one host shows it, keep jobs off that host", "input/output error"), {
	Category: job.StorageError, Signature: "stale-handle", Confidence: 0.95,
	Meaning: "a file on a network file system was replaced or its export changed (ESTALE)",
	Hint:    "another process may have deleted or rewritten the file, or the server restarted: trying again mostly helps",
	Needles: []string{"stale file handle", "stale nfs file handle"},
	Match:   textmatch.New(`file handle(?:: ['"](?P<artefact>[^'"]+)['"])?`),
}, refused(job.StorageError, "stale-handle", "another process may have deleted or rewritten the file, or the server restarted: trying again mostly helps", "stale file handle", "stale nfs file handle"), {
	Category: job.StorageError, Signature: "file-system-gone", Confidence: 0.9,
	Meaning: "a mounted file system does not answer (FUSE, NFS, Lustre)",
	Hint:    "mount it again on that host; the program that serves the mount may have died",
	Needles: []string{"transport endpoint is not connected", "cannot send after transport endpoint shutdown", "software caused connection abort"},
	Match:   textmatch.New(`(?:connected|shutdown|abort): ['"](?P<artefact>/[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: (?:Transport|Cannot send)`),
}, {
	Category: job.StorageError, Signature: "object-store", Confidence: 0.85,
	Meaning: "an object store refused or lost a request",
	Hint:    "the store was busy or away: trying again mostly helps",
	Classes: []string{"*"},
	Needles: []string{"slowdown", "internalerror", "serviceunavailable", "requesttimeout", "reduce your request rate", "503 service unavailable"},
	Match:   textmatch.New(`(?:An error occurred \((?:SlowDown|InternalError|ServiceUnavailable|RequestTimeout|503)\)|reduce your request rate|503 Service Unavailable)`),
}, {
	Category: job.StorageError, Signature: "torch-write-failed", Confidence: 0.8,
	Meaning: "PyTorch could not finish writing a file",
	Hint:    "look at the space, quota and health of the file system that the checkpoint goes to",
	Needles: []string{"pytorchstreamwriter failed writing", "unexpected pos "},
	Match:   textmatch.New(`PytorchStreamWriter failed writing|inline_container\.cc.*unexpected pos`),
}}
