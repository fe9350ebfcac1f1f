package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const waitHint = "find the rank that did not come: it hung, was slow, or took another branch; py-spy dump on it tells where; a longer timeout rarely helps"

var collectiveTimeout = []rule.Rule{{
	Category: job.CollectiveTimeout, Signature: "monitored-barrier", Confidence: 0.85,
	Meaning: "a monitored barrier reports the rank that did not arrive",
	Hint:    "look at what rank ${rank} did meanwhile: it hung, was slow, or took another branch",
	Needles: []string{"failed to pass monitoredbarrier"},
	Match:   textmatch.New(`[Rr]anks? (?P<rank>\d+)[\d, ]* failed to pass monitoredBarrier`),
}, {
	Category: job.CollectiveTimeout, Signature: "monitored-barrier", Confidence: 0.7, Traits: rule.Cascade,
	Hint:    waitHint,
	Needles: []string{"reached monitoredbarrier, but received errors"},
}, {
	Category: job.CollectiveTimeout, Signature: "nccl-timeout", Confidence: 0.7, Traits: rule.Cascade,
	Meaning: "a rank waited in a NCCL collective for others until the watchdog ended it",
	Hint:    waitHint,
	Needles: []string{"watchdog caught collective operation timeout", "nccl operations have failed or timed out", "nccl watchdog thread terminated", "exception (either an error or timeout) detected by watchdog",
		"process group watchdog thread terminated", "timeout at nccl work", "failure detected by watchdog at work", "received a dump signal due to a collective timeout", "observed flight recorder dump signal", "collective operation timeout: ", "notify wait timeout", "wait in the notify register", "notify register has not received"},
	Find:   textmatch.New(`OpType=(?P<artefact>\w+)|remote rank ?\[?(?P<rank>\d+)`),
	Unless: textmatch.New(`remote process exited|unhandled (?:system|cuda) error|ncclRemoteError|ncclSystemError|(?:CUDA|HIP) error|device-side assert|CUDA out of memory`),
}, {
	Category: job.CollectiveTimeout, Signature: "gloo-timeout", Confidence: 0.7, Traits: rule.Cascade,
	Meaning: "a rank waited in a Gloo collective for others longer than the timeout",
	Hint:    waitHint,
	Needles: []string{"timed out waiting ", "application timeout caused pair closure", "gloo connectfullmesh failed", "wait timeout after", "timed out waiting for"},
	Match:   textmatch.New(`Timed out waiting \d+ms for (?P<artefact>\w+) operation|[Aa]pplication timeout|connectFullMesh failed|[Ww]ait timeout after|[Tt]imed out waiting for`),
}, {
	Category: job.CollectiveTimeout, Signature: "rendezvous-timeout", Confidence: 0.7, Traits: rule.Cascade,
	Meaning: "not every rank arrived at the rendezvous in time",
	Hint:    "look at the ranks that did not come, and whether MASTER_ADDR and MASTER_PORT can be reached from their hosts",
	Needles: []string{"clients joined", "workers joined", "nodes joined", "ranks joined", "get socket timeout", "need connect ranknum", "failed to connect agent[", "socket timeout", "rendezvoustimeouterror", "storetimeouterror", "store.get('", "timed out initializing process group", "wait timeout after "},
	Find:    textmatch.New(`connect to (?:any network address of )?\(?(?P<artefact>[\w.\-]+, \d+)`),
	Match:   textmatch.New(`[Tt]imed out after .*joined|\d+/\d+ clients joined|Socket Timeout|get socket timeout|need connect rankNum|Failed to connect agent\[|RendezvousTimeoutError|StoreTimeoutError|Timed out initializing|[Ww]ait timeout after`),
}, {
	Category: job.CollectiveTimeout, Signature: "jax-timeout", Confidence: 0.7, Traits: rule.Cascade,
	Meaning: "the JAX or TensorFlow coordination service lost a task",
	Hint:    waitHint,
	Needles: []string{"barrier timed out", "deadline_exceeded: barrier", "tasks that reached the barrier"},
	Match:   textmatch.New(`[Bb]arrier timed out|DEADLINE_EXCEEDED: [Bb]arrier|DEADLINE_EXCEEDED; # of tasks`),
}, {
	Category: job.CollectiveTimeout, Signature: "desync-report", Confidence: 0.9,
	Meaning: "PyTorch's report names the ranks that did not join a collective",
	Hint:    waitHint,
	Needles: []string{"but didn't join collective", "are the lagging ranks that caused this timeout", "-- gpu "},
	Match:   textmatch.New(`\[(?P<rank>\d+)(?:,[\d, ]*)?\] finished collective #\d+, but didn't join collective|ranks? \[(?P<rank>\d+)[\d, ]*\] are the lagging ranks|^\s*Rank (?P<rank>\d+) -- GPU \S+ managed by process \d+ on node `),
}, {
	Category: job.CollectiveTimeout, Signature: "horovod-stall", Confidence: 0.75,
	Meaning: "Horovod waits for ranks that did not submit a tensor",
	Hint:    waitHint,
	Needles: []string{"submitted to be reduced, gathered or broadcasted by subset of ranks", "stalled ranks:", "stall shutdown", "stall_shutdown_time", "missing ranks:", "one or more rank (marked by"},
	Match:   textmatch.New(`subset of ranks|(?:Stalled|[Mm]issing) ranks:\s*\[?(?P<rank>\d+)|[Ss]tall shutdown|exceeded HOROVOD_STALL|marked by "!"\) is stalled`),
}, {
	Category: job.CollectiveTimeout, Signature: "jax-timeout", Confidence: 0.7, Traits: rule.Cascade,
	Hint:    waitHint,
	Needles: []string{"termination timeout for `", "may be stuck. expected", "barrier has failed", "barrier failed"},
	Match:   textmatch.New("Termination timeout for `|not all of them arrived|[Bb]arrier (?:has )?failed"),
}, {
	Category: job.CollectiveTimeout, Signature: "rendezvous-timeout", Confidence: 0.8, Traits: rule.Cascade,
	Hint:    "look at the ranks that did not come, and whether MASTER_ADDR and MASTER_PORT can be reached from their hosts",
	Classes: []string{"WorkerGroupStartupTimeoutError", "RendezvousTimeoutError", "RendezvousGracefulExitError", "DistStoreTimeoutError", "BarrierTimeout", "BrokenBarrierError", "HorovodTimeoutException", "TimeoutException"},
	Needles: []string{"worker group", "rendezvous", "barrier", "horovod", "store", "broken", "ranks"},
}, {
	Category: job.CollectiveTimeout, Signature: "collective-timed-out", Confidence: 0.75, Traits: rule.Cascade,
	Meaning: "the program says that a collective, a barrier or a rendezvous timed out",
	Hint:    waitHint,
	Classes: []string{"*", rule.Message},
	Needles: []string{"allreduce", "all_reduce", "all-reduce", "allgather", "all_gather", "all-gather", "reduce_scatter", "reduce-scatter", "all_to_all", "alltoall", "all-to-all", "broadcast", "barrier", "collective", "rendezvous", "halo exchange"},
	Match: textmatch.New(`(?i)(?:all[-_]?reduce|all[-_]?gather|reduce[-_]scatter|all[-_]?to[-_]?all|broadcast|barrier|collective|rendezvous|halo exchange)\b.{0,100}\b(?:timed out|time-?out|(?:did|has|have) not (?:complet|finish|return|arriv|join|reach)\w*|not (?:complete|finished|completed) (?:with)?in|expired|giving up|gave up)\b|` +
		`\bbarrier\w*\b.{0,60}\bmissing:? \[?\d|\b(?:timed out|timeout) (?:\w+ ){0,6}(?:for |in |at |on |of |during )?(?:the )?(?:\w+ )?(?:all[-_]?reduce|all[-_]?gather|broadcast|barrier|collective|rendezvous|halo exchange)|(?:barrier\w*|all_?reduce|collective)\b.{0,20}: \d+ ?(?:s|sec\w*|min\w*) without (?:all|every)`),
	Find:   textmatch.New(`(?i)\bmissing: \[?(?P<rank>\d+)|(?:missing|waiting for|lagging|absent|not arrived:?|never (?:reached|arrived)\W*) ?(?:ranks?|process(?:es)?|workers?)[ :=\[]*(?P<rank>\d+)|ranks? \[?(?P<rank>\d+)\]? (?:did|has|have) not`),
	Unless: textmatch.New(`(?i)must be|timeout ?= ?\S+ (?:is|must)|invalid timeout|timeout argument`),
}, {
	Category: job.CollectiveTimeout, Signature: "collective-timed-out", Confidence: 0.7, Traits: rule.Cascade,
	Hint:    waitHint,
	Needles: []string{"without all ", "giving up on ", "gave up on ", "gave up waiting ", "giving up waiting ", " timed out after "},
	Match:   textmatch.New(`(?i)^[^\pL]*(?:\w+[: ] ?)?(?:mpi_?|nccl_?)?(?:barrier|all_?reduce|all_?gatherv?|all_?to_?allv?|bcast|broadcast|reduce|reduce_?scatter)\b\W.{0,40}\btimed out after \d|(?:barrier\w*|all_?reduce|all_?gather|collective|broadcast)\b.{0,40}\b(?:without all|giv\w+ up|gave up)|\b(?:gave|giving) up (?:waiting )?(?:on|for|in) (?:the )?(?:\w+ ){0,2}(?:barrier|all_?reduce|all_?gather|collective|broadcast)`),
}}
