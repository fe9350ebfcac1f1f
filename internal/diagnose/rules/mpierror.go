package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const mpiHint = "look at the MPI call named and its arguments: counts, tags, ranks, buffers, and whether every rank makes it"

// mpiRank matches the rank in the errors of MPICH and, on the line after the error, of Open MPI.
var mpiRank = textmatch.New(`\(rank (?P<rank>\d+) in comm|reported by process \[\d+,(?P<rank>\d+)\]`)

var mpiError = []rule.Rule{{
	Category: job.MPIError, Signature: "mpi-truncate", Confidence: 0.95,
	Meaning: "a message is longer than the receiver's buffer",
	Hint:    "sender and receiver must agree on count and type: " + mpiHint,
	Needles: []string{"mpi_err_truncate", "message truncated"},
	Find:    mpiRank,
}, {
	Category: job.MPIError, Signature: "mpi-peer-lost", Confidence: 0.6, Traits: rule.Cascade,
	Meaning: "MPI lost the connection to another rank, usually because that rank failed",
	Hint:    peerHint,
	Needles: []string{"mca_btl_tcp", "communication error", "mpi_err_proc_failed", "rank termination", "process failed", "mpid_nem_tcp_connpoll", "failed to tcp connect to a peer mpi process", "handshake with a connecting peer mpi", "peer process has unexpectedly disconnected", "poll hangup", "socket closed unexpectedly", "mpi_err_revoked", "ulfm", "one of the processes terminated badly"},
	Match:   textmatch.New(`mca_btl_tcp\w* ?.*(?:failed|closed|reset)|[Cc]ommunication error with rank (?P<artefact>\d+)|(?:\.\.|:) *Communication error(?:$|[^ ]| with| in)|MPI_ERR_PROC_FAILED|(?:^|[^:] )[Pp]rocess failed|Open MPI failed to (?:TCP connect|handshake)|unexpectedly disconnected|MPI_ERR_REVOKED`),
}, {
	Category: job.MPIError, Signature: "mpi-call", Confidence: 0.9, Traits: rule.Generic | rule.Peer,
	Meaning: "an MPI call failed, and the output names the call",
	Hint:    mpiHint,
	Needles: []string{"fatal error in ", "an error occurred in mpi_"},
	Match:   textmatch.New(`[Ff]atal error in (?:internal_|P?MPI_)?(?P<artefact>\w+)|An error occurred in (?P<artefact>MPI_\w+)`),
	Find:    mpiRank,
	Unless:  textmatch.New(`(?i)MPIR?_?Init|internal_Init|MPI_Init`),
}, {
	Category: job.MPIError, Signature: "mpi-errors-are-fatal", Confidence: 0.85, Traits: rule.Generic | rule.Peer,
	Meaning: "an MPI call failed with an error code",
	Hint:    mpiHint,
	Needles: []string{"*** mpi_err_", "mpi_errors_are_fatal"},
	Match:   textmatch.New(`\*\*\* (?P<artefact>MPI_ERR_\w+)|MPI_ERRORS_ARE_FATAL`),
	Unless:  textmatch.New(`MPI_ERR_(?:NO_SUCH_FILE|NO_SPACE|QUOTA|IO|NO_MEM)\b`),
}, {
	Category: job.MPIError, Signature: "mpi-abort", Confidence: 0.8, Traits: rule.Generic | rule.Mute,
	Meaning: "the program called MPI_Abort",
	Hint:    "the program ended itself on purpose: its own message, just before, tells why",
	Needles: []string{"application called mpi_abort", "mpi_abort was invoked on rank", "mpi_abort was called", "internal abort - process", "calling mpi_abort", "mpi_abort called"},
	Match:   textmatch.New(`MPI_ABORT was invoked on rank (?P<rank>\d+)|[Aa]pplication called MPI_Abort\([^)]*\) - process (?P<rank>\d+)|MPI_ABORT was called by rank (?P<rank>\d+)|[Aa]pplication called MPI_Abort|internal ABORT - process (?P<rank>\d+)|(?i)calling mpi_abort\b|mpi_abort called\b`),
}, {
	Category: job.MPIError, Signature: "mpi-no-finalize", Confidence: 0.9, Traits: rule.Mute,
	Meaning: "a rank ended without MPI_Finalize",
	Hint:    "call MPI_Finalize on every way out of the program",
	Needles: []string{"exiting improperly", "without calling \"finalize\"", "without calling finalize"},
}, {
	Category: job.MPIError, Signature: "mpi-no-finalize", Confidence: 0.9, Traits: rule.Mute | rule.Weak | rule.Continued,
	Hint:    "call MPI_Finalize on every way out of the program",
	Needles: []string{"has exited due to process rank "},
	Match:   textmatch.New(`has exited due to process rank (?P<rank>\d+) with PID \d+ on`),
}, {
	Category: job.MPIError, Signature: "mpi-no-finalize", Confidence: 0.9, Traits: rule.Mute,
	Hint: "call MPI_Finalize on every way out of the program",
	Ends: rule.Ends{Reasons: []job.Reason{job.ReasonNoFinalize}},
}, {
	Category: job.MPIError, Signature: "mpi-no-finalize", Confidence: 1, Traits: rule.Mute,
	Hint: "call MPI_Finalize on every way out of the program",
	Text: "ended with code 0, but ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Exited}, Reasons: []job.Reason{job.ReasonNoFinalize}},
}, {
	Category: job.MPIError, Signature: "mpi-singleton", Confidence: 1, Retry: job.RetryNever,
	Meaning: "silent singletons: the program was built for another MPI library than it was started with",
	Hint:    "name the flavour with --mpi (openmpi or mpich), or build the program for the MPI that starts it",
	Text:    "ended with code 0, but ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Exited}, Reasons: []job.Reason{job.ReasonSingleton}},
}, {
	Category: job.MPIError, Signature: "mpi-mixed", Confidence: 1, Retry: job.RetryNever,
	Meaning: "the programs of one gang are built for different MPIs",
	Hint:    "build all of them for the same MPI",
	Text:    "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}, Reasons: []job.Reason{job.ReasonMixedMPI}},
}, {
	Category: job.MPIError, Signature: "zero-exit", Confidence: 0.9, Traits: rule.Mute,
	Meaning: "a rank ended with code 0, but too early or in a way that is a failure for the gang",
	Hint:    "every rank must stay until the work of all is done: look at what lets this one end early",
	Text:    "ended with code 0, but ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Exited}},
}, {
	Category: job.MPIError, Signature: "mpi-singleton", Confidence: 0.95, Retry: job.RetryNever,
	Hint: "name the flavour with --mpi (openmpi or mpich), or build the program for the MPI that starts it",
	Ends: rule.Ends{Reasons: []job.Reason{job.ReasonSingleton}},
}, {
	Category: job.MPIError, Signature: "mpi-call", Confidence: 0.9, Traits: rule.Generic | rule.Peer,
	Hint:    mpiHint,
	Needles: []string{"before mpi_init was invoked", "after mpi_finalize was invoked", "use an mpi routine before", "use an mpi routine after", "mpi had an error", "before calling mpi_init", "after calling mpi_finalize"},
	Match:   textmatch.New(`(?:The )?(?P<artefact>MPI_\w+)\(\) function was called (?:before|after)|use an MPI routine (?:before|after)`),
}, {
	Category: job.MPIError, Signature: "mpi-call", Confidence: 0.9,
	Hint:    mpiHint,
	Classes: []string{"Exception", "MPIError"},
	Needles: []string{"mpi_err_", "error stack", "invalid communicator", "invalid rank", "invalid tag", "invalid datatype", "invalid count", "invalid root", "invalid buffer pointer", "other mpi error"},
	Match:   textmatch.New(`(?P<artefact>MPI_ERR_\w+)|(?P<artefact>MPI_\w+)\(\S*\)|(?:Invalid \w+(?: pointer)?|Other MPI error|Message truncated), error stack`),
	Unless:  textmatch.New(`(?i)message truncated|MPI_ERR_(?:TRUNCATE|NO_SUCH_FILE|NO_SPACE|QUOTA|IO|NO_MEM|ACCESS|FILE_EXISTS|READ_ONLY|PROC_FAILED|REVOKED)\b`),
}}
