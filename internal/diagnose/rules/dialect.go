package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// dialects has further rules for signatures of other files. They match what Ascend NPUs, Charm++, ARMCI and others
// print.
var dialects = []rule.Rule{{
	Category: job.CollectiveTimeout, Signature: "nccl-timeout", Confidence: 0.7, Traits: rule.Cascade | rule.Continued,
	Hint:    waitHint,
	Needles: []string{"ei0002: ", "ei0006: ", "getting socket times out", "notify wait timed out", "hccl("},
	Match:   textmatch.New(`\bEI000[26]: |\[ERROR\] HCCL\(.*\btime-?d? ?out\b|[Gg]etting socket times out|[Nn]otify wait timed out`),
	Find:    textmatch.New(`remote ?[Rr]ank\W{0,4}(?P<rank>\d+)`),
}, {
	Category: job.NetworkError, Signature: "infiniband", Confidence: 0.8,
	Hint:    "check the links of the NPU named (hccn_tool), its cable and the fabric",
	Needles: []string{"ei0009: ", "ei0013: ", "ej0004: ", "error cqe"},
	Match:   textmatch.New(`\bEI00(?:09|13): |\bEJ0004: |\berror cqe\b`),
}, {
	Category: job.SemanticError, Signature: "collective-mismatch", Confidence: 0.85,
	Hint:    "see which of the ranks calls the collective with other parameters than the others",
	Needles: []string{"ei0005: "},
	Match:   textmatch.New(`\bEI0005: `),
}, {
	Category: job.GPUOOM, Signature: "cuda-out-of-memory", Confidence: 0.9,
	Hint:    gpuMemoryHint,
	Needles: []string{"el0004: ", "ei0007: ", "cuda failed", "cudamalloc", "gpumalloc", "hipmalloc"},
	Match:   textmatch.New(`\bE(?:L0004|I0007): |(?i)\b(?:cuda|hip|gpu)\w* (?:\w+ )?failed\b.{0,60}\bout of memory\b`),
}, {
	Category: job.CUDAInit, Signature: "cuda-init", Confidence: 0.85,
	Hint:    "see whether a process of an earlier job still holds the device (npu-smi info), and end it",
	Needles: []string{"ej0001: ", "hccp process"},
	Find:    textmatch.New(`RankID:(?P<rank>\d+)`),
	Match:   textmatch.New(`\bEJ0001: |[Ff]ailed to initialize the HCCP process`),
}, {
	Category: job.PortInUse, Signature: "address-in-use", Confidence: 0.9, Traits: rule.Weak | rule.Cascade,
	Hint:    "use MASTER_PORT, which gangrun chooses again for each attempt, instead of a fixed port; end processes that an earlier job has left",
	Needles: []string{"ej0003: ", "server socket has failed to listen on any local network address"},
	Match:   textmatch.New(`\bEJ0003: |server socket has failed to listen on any local network address`),
	Find:    textmatch.New(`port: (?P<artefact>\d{2,5})`),
}, {
	Category: job.CUDAFailure, Signature: "cuda-launch-failure", Confidence: 0.8, Traits: rule.Continued,
	Hint:    "look at the device logs of the NPU (plog) and at its health (npu-smi info)",
	Needles: []string{"ee1002: ", "ez9999: ", "runtime result = 507", "aicore exception", "aivec exception", "aicore error", "aicpu exception"},
	Match:   textmatch.New(`\bEE1002: |\bEZ9999: .{0,40}\w|runtime result = 507\d{3}\b|(?i)\bai(?:core|vec|cpu) (?:exception|error)\b`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "segfault-trace", Confidence: 0.95,
	Hint:    debugHint,
	Classes: []string{"Charm++ crash"},
}, {
	Category: job.Killed, Signature: "told-to-end", Confidence: 0.6, Traits: rule.Cascade,
	Hint:    "look for the rank that failed first, and for who sends signals: a batch system, a person",
	Classes: []string{"Charm++ signal"},
}, {
	Category: job.Traceback, Signature: "uncaught-exception", Confidence: 0.5, Traits: rule.Mute,
	Hint:    "the log ends in a traceback: look at the other logs of that rank, and for who ended it",
	Classes: []string{rule.CutOff},
}, {
	Category: job.Assertion, Signature: "c-assertion", Confidence: 0.9,
	Hint:    "look at the condition and at what the program did before",
	Needles: []string{"armci assert fail", "armci dassert fail", "comex assert"},
	Find:    textmatch.New(`^\[(?P<rank>\d+)\] ARMCI|^(?P<rank>\d+): ?ARMCI|\(rank:(?P<rank>\d+) hostname:`),
}, {
	Category: job.MPIRuntime, Signature: "mpi-transport", Confidence: 0.85, Traits: rule.Peer,
	Hint:    "choose another transport (OMPI_MCA_btl, OMPI_MCA_pml, UCX_TLS), or see whether the hosts can reach each other",
	Needles: []string{"at least one pair of mpi processes are unable to reach"},
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.7,
	Hint:    peerHint,
	Classes: []string{"LightGBMError", "XGBoostError"},
	Needles: []string{"socket recv error", "socket send error", "socket error", "connecting to rank", "please check network", "connection reset", "broken pipe", "allreduce failed", "connection closed"},
}, {
	Category: job.SemanticError, Signature: "library-type-error", Confidence: 0.7,
	Hint:    traceHint,
	Classes: []string{"LightGBMError", "XGBoostError"},
}, {
	Category: job.SemanticError, Signature: "torch-state-dict", Confidence: 0.8,
	Hint:    "build the model with the same sizes as the checkpoint, or load only what fits (strict=False)",
	Needles: []string{": copying a param with shape"},
	Match:   textmatch.New(`^\s*size mismatch for \S+: copying a param with shape`),
}, {
	Category: job.SemanticError, Signature: "torch-state-dict", Confidence: 0.7, Traits: rule.Weak,
	Hint:    "build the model with the same layers as the checkpoint, or load only what fits (strict=False)",
	Needles: []string{"key(s) in state_dict: "},
	Match:   textmatch.New(`^\s*(?:Missing|Unexpected) key\(s\) in state_dict: `),
}, {
	Category: job.Killed, Signature: "sigkill", Confidence: 0.7, Traits: rule.Generic,
	Hint:    "look for who may kill: a person, a limit of the container; where the kernel log cannot be read, memory may still be the reason",
	Needles: []string{"exit code:  ", "exitcode: 137", "exitcode\": 137", "exitcode\":137"},
	Match:   textmatch.New(`^\s*Exit Code: {2,}137\b|"?[eE]xitCode"?: ?137\b`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "child-segfault", Confidence: 0.7, Traits: rule.Generic,
	Hint:    debugHint,
	Needles: []string{"exit code:  ", "exitcode: 139", "exitcode\": 139", "exitcode\":139"},
	Match:   textmatch.New(`^\s*Exit Code: {2,}139\b|"?[eE]xitCode"?: ?139\b`),
}, {
	Category: job.LaunchError, Signature: "container-runtime", Confidence: 0.7, Traits: rule.Generic,
	Hint:    "read the lines beside it: the image, the bind mounts and the site's configuration are what they name",
	Needles: []string{"pyxis: ", "spank_pyxis", "spank plugin stack"},
	Match:   noReason,
}, {
	Category: job.LaunchError, Signature: "batch-refused", Confidence: 0.7, Traits: rule.Generic,
	Hint:    "the lines beside it say why",
	Needles: []string{"aborted by pbs server"},
}, {
	Category: job.Killed, Signature: "sigterm", Confidence: 0.7, Traits: rule.Generic,
	Hint:    "look for who sends it: a batch system before it takes the host away, a person, a launcher inside the rank",
	Needles: []string{"signal (15"},
	Match:   textmatch.New(`^\s*(?:\[\d+\] )?signal \(15(?:\.-?\d+)?\): Terminated`),
}}

// noReason matches lines of pyxis which say that the container did not start, but not why.
var noReason = textmatch.New(`pyxis: (?:child \d+ failed|failed to (?:import|create|start)|container start failed|couldn't start container|could not start container|printing|if the image has an unusual)|required plugin spank_pyxis|invoke spank plugin stack`)
