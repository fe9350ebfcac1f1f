package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var traceback = []rule.Rule{{
	Category: job.Traceback, Signature: "child-failed", Confidence: 0.6, Traits: rule.Cascade | rule.Generic,
	Meaning: "a launcher that runs inside the rank reports that a process which it started failed",
	Hint:    "look for the first failure among the processes that the rank started, above the report",
	Classes: []string{"ChildFailedError", "CalledProcessError", "ProcessExitedException", "WorkerCrashedError", "ActorDiedError", "DistBackendError", "RayActorError", "SignalException", "EngineDeadError", "AsyncEngineDeadError", "MQEngineDeadError", "TrainingFailedError", "TuneError", "BrokenBarrierError", "ProcessRaisedException", "DeadlockDetectedException", "ActorUnavailableError", "WorkflowError", "DeadKernelError", "DistributedRunError", "JobTimeoutError"},
}, {
	Category: job.Traceback, Signature: "child-failed", Confidence: 0.6, Traits: rule.Cascade | rule.Generic,
	Hint:    "look for the first failure among the processes that the rank started, above the report",
	Classes: []string{"RuntimeError", "Exception"},
	Needles: []string{"the details refer to 'ascend error message'", "engine core initialization failed", "see root cause above", "enginecore encountered an issue", "worker failed with error", "engine process failed to start", "failed core proc(s)"},
}, {
	Category: job.Traceback, Signature: "peer-failed", Confidence: 0.5, Traits: rule.Cascade | rule.Generic,
	Meaning: "a rank says that it ends because another one failed",
	Hint:    "look for the rank that failed first",
	Needles: []string{"due to previous error", "communicator was aborted", "aborted on the client due to", "closing signal sigterm", "received signal: 15", "received 15 death signal", "driver shutting down", "one of the ranks failed", "another rank failed", "other ranks have failed", "worker group failed", "caused collective abort", "horovod has been shut down"},
}, {
	Category: job.Traceback, Signature: "worker-exited", Confidence: 0.85, Traits: rule.Generic,
	Meaning: "a process that the rank started, such as a data worker, ended itself with a code",
	Hint:    "look for what the worker printed before its end; with num_workers=0 the rank does the work itself, and shows the error",
	Classes: []string{"RuntimeError"},
	Needles: []string{"exited unexpectedly with exit code"},
	Match:   textmatch.New(`\(pids?\(?s?\)? (?P<pid>\d+)[^)]*\) exited unexpectedly with exit code [1-9]`),
}, {
	Category: job.Traceback, Signature: "cpp-exception", Confidence: 0.85, Traits: rule.Generic,
	Meaning: "a C++ exception that nothing caught",
	Hint:    "run the program in a debugger and break on throw (gdb: catch throw)",
	Classes: []string{"std::runtime_error", "std::exception", "std::logic_error", "std::system_error", "std::ios_base::failure", "std::range_error", "std::overflow_error", "std::underflow_error", "std::filesystem::filesystem_error", "std::future_error", "std::regex_error"},
}, {
	Category: job.Traceback, Signature: "rust-panic", Confidence: 0.85, Traits: rule.Generic,
	Meaning: "a Rust panic",
	Hint:    "look at the place named; RUST_BACKTRACE=1 shows the calls that led there",
	Classes: []string{"rust panic"},
}, {
	Category: job.Traceback, Signature: "go-panic", Confidence: 0.85, Traits: rule.Generic,
	Meaning: "a Go panic or fatal error",
	Hint:    "look at the first of the program's own functions in the stack trace",
	Classes: []string{"go panic"},
}, {
	Category: job.Traceback, Signature: "uncaught-exception", Confidence: 0.7, Traits: rule.Generic,
	Meaning: "any other exception that nothing caught",
	Hint:    traceHint,
	Classes: []string{"ValueError"},
	Needles: []string{"unable to configure "},
}, {
	Category: job.Traceback, Signature: "numerical-exception", Confidence: 0.85,
	Meaning: "a numerical library found no result: a singular matrix, an overflow, no convergence",
	Hint:    traceHint + "; look at the values that the call got",
	Classes: []string{"LinAlgError", "FloatingPointError", "ArithmeticError", "ArpackNoConvergence", "ArpackError", "QhullError", "NotPositiveDefiniteMatrixError", "CholmodNotPositiveDefiniteError", "PosDefException", "SingularException", "LAPACKException", "NoConvergence", "ConvergenceError"},
}, {
	Category: job.Traceback, Signature: "python-recursion", Confidence: 0.9,
	Meaning: "a function that calls itself without end",
	Hint:    traceHint,
	Classes: []string{"RecursionError"},
}, {
	Category: job.Traceback, Signature: "uncaught-exception", Confidence: 0.75,
	Hint:    "look at the call of stop() that the message comes from; traceback() and options(error = recover) tell more",
	Classes: []string{rule.Message},
	Context: textmatch.New(`^(?:Calls: |Execution halted)`),
}, {
	Category: job.Traceback, Signature: "uncaught-exception", Confidence: 0.75, Traits: rule.Generic,
	Hint:    traceHint,
	Classes: []string{"*"},
}}
