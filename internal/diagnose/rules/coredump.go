package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var coreDump = []Rule{{
	Category: job.CoreDump, Signature: "illegal-instruction", Confidence: 0.9,
	Meaning: "the program uses an instruction that the processor does not have",
	Hint:    "the program was built for a newer processor than that host's: build without -march=native, or leave the host out",
	Needles: []string{"illegal instruction", "fatal python error: illegal instruction", "but were not available on your machine", "instructions that are not available"},
	Match:   textmatch.New(`(?i)illegal instruction \(core|illegal instruction$|Error: Illegal instruction|attempted to use .*instructions|not available on your machine`),
	Unless:  textmatch.New(`illegal instruction was encountered`),
}, {
	Category: job.CoreDump, Signature: "cpp-terminate", Confidence: 0.85, Traits: Generic,
	Meaning: "the C++ runtime ended the program: std::terminate, or a call of a pure virtual function",
	Hint:    "run the program in a debugger and break on throw (gdb: catch throw)",
	Needles: []string{"terminate called without an active exception", "terminate called recursively", "pure virtual method called", "fatal python error: aborted", "signal: aborted (6)", "caught signal 6", "program received signal sigabrt", "signal (6): abort"},
}, {
	Category: job.CoreDump, Signature: "sigabrt", Confidence: 1, Traits: Generic | Mute,
	Meaning: "the process ended itself with abort()",
	Hint:    "the lines before its end tell why; where there are none, run it in a debugger",
	Text:    "ended by ${signal}: it called abort()${core}", Ends: Ends{Signals: []int{6}},
}, {
	Category: job.CoreDump, Signature: "sigill", Confidence: 1,
	Meaning: "the process executed an instruction that the processor does not know",
	Hint:    "the program was built for a newer processor than that host's: build without -march=native, or leave the host out",
	Text:    "ended by an illegal instruction, ${signal}${core}", Ends: Ends{Signals: []int{4}},
}, {
	Category: job.CoreDump, Signature: "sigfpe", Confidence: 1,
	Meaning: "the process divided integers by zero or trapped another arithmetic error",
	Hint:    "run it in a debugger to see the line",
	Text:    "ended by an arithmetic error, ${signal}${core}", Ends: Ends{Signals: []int{8}},
}, {
	Category: job.CoreDump, Signature: "sigtrap", Confidence: 1,
	Meaning: "the process stopped at a trap: a breakpoint or a check of its compiler or library",
	Hint:    "run it in a debugger to see the line",
	Text:    "ended by a trap, ${signal}${core}", Ends: Ends{Signals: []int{5}},
}, {
	Category: job.CoreDump, Signature: "sigsys", Confidence: 1,
	Meaning: "the process made a system call that a sandbox forbids",
	Hint:    "allow the call in the container's seccomp profile",
	Text:    "ended by a forbidden system call, ${signal}${core}", Ends: Ends{Signals: []int{31}},
}, {
	Category: job.CoreDump, Signature: "sigquit", Confidence: 0.9, Traits: Generic,
	Meaning: "somebody asked the process to end with a core",
	Hint:    "the signal came from outside the gang: a person, a watchdog, a batch system",
	Text:    "ended by ${signal}, sent from outside${core}", Ends: Ends{Signals: []int{3}},
}}
