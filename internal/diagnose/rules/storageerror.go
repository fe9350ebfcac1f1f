package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var storageError = []rule.Rule{{
	Category: job.StorageError, Signature: "io-error", Confidence: 0.9,
	Meaning: "a disk or a network file system failed to read or write data",
	Hint:    "look at the host's kernel log and the file server; where only one host shows it, keep jobs off that host",
	Needles: []string{"input/output error", "remote i/o error", "lustreerror", "errno 5]", " eio", ": i/o error", "mpi_err_io"},
	Match:   textmatch.New(`(?:[Ii]nput/output|[Rr]emote I/O) error(?:: ['"](?P<artefact>[^'"]+)['"])?|LustreError|\bEIO\b|Errno 5\]|: I/O error$|\*\*\* MPI_ERR_IO\b`),
	Unless:  textmatch.New(`(?i)^file input/output error:|\bstty\b|/dev/(?:pts|tty)|libfabric|\bOFI\b|MPIDI_|\bUCX\b|NCCL|ibv_|hwmon|/sys/|bluetooth`),
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
	Match:   textmatch.New(`(?:connected|shutdown|abort): ['"](?P<artefact>/[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: Transport|Cannot send after transport endpoint shutdown$`),
}, {
	Category: job.StorageError, Signature: "object-store", Confidence: 0.85,
	Meaning: "an object store refused or lost a request",
	Hint:    "the store was busy or away: trying again mostly helps",
	Classes: []string{"*"},
	Needles: []string{"slowdown", "internalerror", "serviceunavailable", "requesttimeout", "reduce your request rate", "503 service unavailable", "reached max retries"},
	Match:   textmatch.New(`(?:An error occurred \((?:SlowDown|InternalError|ServiceUnavailable|RequestTimeout|503)\)|\(SlowDown\)|reduce your request rate|503 Service Unavailable)`),
}, {
	Category: job.StorageError, Signature: "object-store", Confidence: 0.85,
	Hint:    "the store was busy or away: trying again mostly helps",
	Classes: []string{rule.Message, "go panic", "rust panic"},
	Match:   textmatch.New(`(?i)\b(?:S3|GCS|gs://|blob|object ?store|bucket|minio|GetObject|PutObject)\b.*\b(?:status ?code:? ?50\d|SlowDown|ServiceUnavailable|InternalError|503\b)`),
}, {
	Category: job.DiskFull, Signature: "torch-write-failed", Confidence: 0.8,
	Meaning: "PyTorch could not finish writing a file",
	Hint:    "look at the space, quota and health of the file system that the checkpoint goes to",
	Needles: []string{"pytorchstreamwriter failed writing", "unexpected pos "},
	Match:   textmatch.New(`PytorchStreamWriter failed writing|inline_container\.cc.*unexpected pos`),
}, {
	Category: job.StorageError, Signature: "kernel-storage", Confidence: 0.95, Traits: rule.Kernel,
	Meaning: "the kernel of a host reports a failed disk, or a file server that does not answer",
	Hint:    "look at the disk or the file server; keep jobs off the host until it is repaired",
	Text:    "the storage of the host failed (${title})",
	Needles: []string{"i/o error, dev", "buffer i/o error", "remounting filesystem read-only", "not responding", "lustreerror", "ext4-fs error", "xfs (", "nvme", "medium error", "unrecovered read error", "lock reclaim failed", "was evicted by", "btrfs error", "blk_update_request", "critical medium", "-fs error", "mmfs", "connection to", "sense key", "print_req_error", "journal has aborted", "detected io errors", "exception emask", "failed command: ", "uncorrectable i/o failure", "disk failure on", "failing path", "device offlined", "cifs: ", "cifs vfs", "detected aborted journal", "libceph: ", "ceph: mds", "zfs: ", "has not responded in"},
	Match: textmatch.New(`I/O error, dev (?P<artefact>\w+)|Buffer I/O error|[Rr]emounting filesystem read-only|nfs: server (?P<artefact>\S+) not responding|LustreError:.*(?:evict|failed|error|rc = -|operation)|EXT4-fs error|XFS \(\S+\):.*(?:I/O error|[Cc]orruption|[Ss]hutdown|shutting down)|nvme\d*.*(?:timeout|reset controller|controller is down|I/O \d+ QID|Device not ready)|[Mm]edium [Ee]rror|[Uu]nrecovered read error|Lock reclaim failed|was evicted by|` +
		`BTRFS error|blk_update_request: .*error|critical (?:medium|target) error|mmfs.*(?:failed|unmount|lost)|Sense Key : (?:Medium|Hardware) Error|print_req_error: .*error|[Jj]ournal has aborted|Detected (?:IO errors|aborted journal)|ata\d+(?:\.\d+)?: (?:exception Emask|failed command: )|uncorrectable I/O failure|Disk failure on (?P<artefact>\w+)|multipath: .*[Ff]ailing path|Device offlined|CIFS.*(?:has not responded|Send error|cifs_mount failed)|libceph: (?:mds|osd|mon)\d+ .*(?:hung|session lost|down|socket error)|ceph: mds\d+ (?:hung|reconnect denied|rejected session)`),
	Unless: textmatch.New(`(?i)shutdown timeout set|dev (?:fd|sr|loop)\d|RTD3|CE memory`),
}, {
	Category: job.StorageError, Signature: "database-damaged", Confidence: 0.85,
	Meaning: "a database file is damaged, or its file system does not lock files",
	Hint:    "restore the file from a copy; keep databases off network file systems",
	Needles: []string{"database disk image is malformed", "disk i/o error", "mdb_corrupted", "sqlite_corrupt", "sqlite_ioerr", "corrupted: block checksum", "index file is corrupt"},
}, {
	Category: job.StorageError, Signature: "bad-message", Confidence: 0.85,
	Meaning: "a file system is damaged (EBADMSG, EUCLEAN), or a block of it fails its checksum",
	Hint:    "look at the host's kernel log, and have the file system checked",
	Needles: []string{"bad message", "structure needs cleaning", "errno 117", "errno 74]", "invalid exchange", "checksum mismatch on", "zpool status"},
	Match:   textmatch.New(`(?:Errno 74\] |: )Bad message|Structure needs cleaning|Errno (?:117|74)\]|: Invalid exchange`),
}, {
	Category: job.StorageError, Signature: "input-output-error", Confidence: 0.85,
	Meaning: "a library reports that storage lost or refused data",
	Hint:    "look at the host's kernel log and the file server",
	Needles: []string{"name node is in safe mode", "multi-attach error", "too many levels of symbolic links", "communication error on send", "blockmissingexception", "remote i/o error", "connection to ost", "no route to ost", "gpfs", "beegfs", "ceph", "hdfs", "could not obtain block", "missing block", "datanode", "replicated to 0 nodes", "of the 1 minreplication nodes", "standbyexception", "not supported in state standby", "safemodeexception", "unable to close file because the last block", "weka", "glusterfs", "nfs: server", "server not responding", "mount.nfs", "mount error(", "fusermount", "fuse: ", "fuse device"},
	Match:   textmatch.New(`(?i)name ?node is in safe mode|too many levels of symbolic links|multi-attach error|communication error on send|remote i/o error|(?:gpfs|beegfs|ceph|hdfs|lustre)\b.*(?:error|fail|timed? ?out|unavailable|not respond)|could not obtain block|no live nodes contain|BlockMissingException|(?:bad|dead) datanode|replicated to 0 nodes|of the 1 minReplication nodes|StandbyException|not supported in state standby|SafeModeException|unable to close file because the last block|\b(?:wekafs|glusterfs)\b.*(?:error|fail|timed? ?out|unavailable|disconnected)|nfs:? server \S+ not responding|mount\.nfs\d?: (?:Connection|Stale|Protocol|No route|Remote|mount system call failed|access denied)|mount error\(\d+\)|fusermount\d?: (?:mount failed|failed to|entry for)|fuse: (?:mount failed|failed to|device not found|unknown error)|failed to mount FUSE`),
	Unless:  textmatch.New(`(?i)^[\d/: ,.-]* ?(?:INFO|DEBUG|WARN)\b|errors?[=:] ?0\b|error count:? 0\b|fail-?over|\b(?:0|no) errors?\b|error_rate|config|setting|--\w*(?:gpfs|ceph|hdfs|beegfs)`),
}, {
	Category: job.StorageError, Signature: "file-system-gone", Confidence: 0.9,
	Hint:    "mount it again on that host; the server or the program that serves the mount may be away",
	Classes: []string{"OSError", "TimeoutError", "ConnectionAbortedError"},
	Needles: []string{"errno 103] ", "errno 107] ", "errno 108] ", "errno 110] ", "errno 112] ", "errno 121] ", "errno 70] ", "errno 61] ", "errno 19] ", "errno 6] ", "errno 512] "},
	Match:   textmatch.New(`\[Errno (?:103|107|108|110|112|121|70|61|19|6|512)\] [^:]+: b?['"](?P<artefact>[^'"]*/[^'"]+)['"]`),
}, {
	Category: job.StorageError, Signature: "file-lock", Confidence: 0.85,
	Meaning: "a file cannot be locked: another process holds it, or its file system does not lock files",
	Hint:    "end other processes that have the file open; for HDF5 on such a file system, set HDF5_USE_FILE_LOCKING=FALSE",
	Needles: []string{"no locks available", "unable to lock file", "errno 37]", "could not lock config file"},
	Match:   textmatch.New(`No locks available|[Uu]nable to lock file|Errno 37\]`),
	Unless:  textmatch.New(`(?i)warn|will retry|waiting`),
}, {
	Category: job.StorageError, Signature: "object-store", Confidence: 0.8,
	Hint:    "the store was busy or away: trying again mostly helps",
	Needles: []string{"(slowdown)", "(internalerror) when", "(serviceunavailable) when", "(requesttimeout) when", "servererror: 5", "errorcode:serverbusy", "errorcode: serverbusy", "operationtimedout", "backenderror", "error code: slowdown", "resumableuploadexception", "resumabledownloadexception"},
	Match:   textmatch.New(`An error occurred \((?:SlowDown|InternalError|ServiceUnavailable|RequestTimeout)\) when|Error Code: (?:SlowDown|InternalError)|ErrorCode: ?(?:ServerBusy|OperationTimedOut)|"?backendError"?|Resumable(?:Upload|Download)Exception: 5\d\d`),
}}
