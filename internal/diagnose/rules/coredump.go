package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var coreDump = []rule.Rule{{
	Category: job.CoreDump, Signature: "illegal-instruction", Confidence: 0.9,
	Meaning: "the program uses an instruction that the processor does not have",
	Hint:    "the program was built for a newer processor than that host's: build without -march=native, or leave the host out",
	Needles: []string{"illegal instruction", "fatal python error: illegal instruction", "but were not available on your machine", "aren't available on your machine", "instructions that are not available", "illegal hardware instruction", "caught illegal operation", "sigill", "cpu isa level is lower", "cpu does not support x86-64-v", "your machine doesn't support", "not built to run on the processor", "processor support intel", "addresssanitizer: ill on", "terminated with signal 4", "died from signal 4", "4/ill"},
	Match:   textmatch.New(`(?i)illegal instruction \(core|illegal instruction$|Error: Illegal instruction|attempted to use .*instructions|(?:not|aren't) available on your machine|illegal hardware instruction|\*\*\* caught illegal operation|Signal: Illegal instruction \(4\)|caught signal 4\b|signal \(?4(?:\.\d+)?\)?(?: \(\d+\))?: Illegal instruction|received signal SIGILL|SIGILL \(0x4\) at pc|(?:^SIGILL: |\[signal SIGILL|\*\*\* SIGILL (?:received|\(@))|by (?:signal )?SIGILL|program exception - illegal instruction|CPU ISA level is lower than required|CPU does not support x86-64-v\d|your machine doesn't support: |not built to run on the processor|operating system and the processor support Intel|AddressSanitizer: ILL on|(?:terminated with|died from) signal 4\b|exit signal Illegal instruction|status=4/ILL|signal 4/ILL`),
	Unless:  textmatch.New(`illegal instruction was encountered|(?i)warn|\bignore`),
}, {
	Category: job.CoreDump, Signature: "cpp-terminate", Confidence: 0.85, Traits: rule.Generic,
	Meaning: "the C++ runtime ended the program: std::terminate, or a call of a pure virtual function",
	Hint:    "run the program in a debugger and break on throw (gdb: catch throw)",
	Needles: []string{"terminate called without an active exception", "terminate called recursively", "pure virtual method called", "panicked while processing panic"},
	Unless:  textmatch.New(`assertion failed|CPU does not support`),
}, {
	Category: job.CoreDump, Signature: "sigabrt", Confidence: 0.85, Traits: rule.Generic,
	Meaning: "the process ended itself with abort()",
	Hint:    "the lines before its end tell why; where there are none, run it in a debugger",
	Needles: []string{"fatal python error: aborted", "received signal sigabrt", "signal: aborted (6)", "caught signal 6", "signal (6): abort", "signal 6 (-6): abort", "signal (6.-6): abort", "(76): abort trap signal", "sigabrt (0x6) at pc", "*** sigabrt received", "exit signal aborted", "died from signal 6", "terminated with signal 6", "zsh: abort", "status=6/abrt", "signal 6/abrt", "terminated by signal sigabrt", "fatal glibc error: "},
	Unless:  textmatch.New(`assertion failed|CPU does not support`),
}, {
	Category: job.CoreDump, Signature: "cpp-terminate", Confidence: 0.85,
	Hint:    "the compiler inside the program (LLVM) ended it: report the code that it compiled, or use another version",
	Classes: []string{"LLVM error"},
}, {
	Category: job.CoreDump, Signature: "sigabrt", Confidence: 1, Traits: rule.Generic | rule.Mute,
	Hint: "the lines before its end tell why; where there are none, run it in a debugger",
	Text: "ended by ${signal}: it called abort()${core}", Ends: rule.Ends{Signals: []int{6}},
}, {
	Category: job.CoreDump, Signature: "sigill", Confidence: 1,
	Meaning: "the process executed an instruction that the processor does not know",
	Hint:    "the program was built for a newer processor than that host's: build without -march=native, or leave the host out",
	Text:    "ended by an illegal instruction, ${signal}${core}", Ends: rule.Ends{Signals: []int{4}},
}, {
	Category: job.CoreDump, Signature: "sigfpe", Confidence: 1,
	Meaning: "the process divided integers by zero or trapped another arithmetic error",
	Hint:    "run it in a debugger to see the line",
	Text:    "ended by an arithmetic error, ${signal}${core}", Ends: rule.Ends{Signals: []int{8}},
}, {
	Category: job.CoreDump, Signature: "sigtrap", Confidence: 1,
	Meaning: "the process stopped at a trap: a breakpoint or a check of its compiler or library",
	Hint:    "run it in a debugger to see the line",
	Text:    "ended by a trap, ${signal}${core}", Ends: rule.Ends{Signals: []int{5}},
}, {
	Category: job.CoreDump, Signature: "sigsys", Confidence: 1,
	Meaning: "the process made a system call that a sandbox forbids",
	Hint:    "allow the call in the container's seccomp profile",
	Text:    "ended by a forbidden system call, ${signal}${core}", Ends: rule.Ends{Signals: []int{31}},
}, {
	Category: job.CoreDump, Signature: "sigquit", Confidence: 0.9, Traits: rule.Generic,
	Meaning: "somebody asked the process to end with a core",
	Hint:    "the signal came from outside the gang: a person, a watchdog, a batch system",
	Text:    "ended by ${signal}, sent from outside${core}", Ends: rule.Ends{Signals: []int{3}},
}, {
	Category: job.CoreDump, Signature: "sigfpe", Confidence: 0.9,
	Hint:    "run it in a debugger to see the line",
	Needles: []string{"floating point exception", "floating-point exception", "sigfpe", "arithmetic exception", "floating divide by zero", "floating invalid", "floating overflow", "integer divide by zero", "fpe: floating point", "addresssanitizer: fpe", "8/fpe", "died from signal 8", "terminated with signal 8", "(71): integer divide", "caught signal 8 "},
	Match:   textmatch.New(`(?i)Signal: Floating point exception \(8\)|caught signal 8\b|signal \(?8(?:\.\d+)?\)?(?: \(\d+\))?: Floating point exception|received signal SIGFPE|SIGFPE \(0x8\) at pc|(?:^|\*\*\* )SIGFPE\b|by (?:signal )?SIGFPE|fatal python error: floating|^zsh: floating point exception|forrtl: (?:error|severe) \((?:65|71|72|73|74|75)\): (?:floating|integer)|signal number 8 FPE|AddressSanitizer: FPE on|(?:terminated with|died from) signal 8\b|exit signal (?:floating|arithmetic)|status=8/FPE|signal 8/FPE|Signals\.SIGFPE|^(?:\S+: )?arithmetic exception(?: \(core dumped\))?$|floating(?:-| )point exception \(core dumped\)`),
	Unless:  textmatch.New(`(?i)warn|are signalling|enabled|trapping|handler`),
}, {
	Category: job.CoreDump, Signature: "sigtrap", Confidence: 0.9,
	Hint:    "run it in a debugger to see the line",
	Needles: []string{"trace/breakpoint trap", "signal sigtrap", "trace/bpt trap", "5/trap"},
	Match:   textmatch.New(`(?i)Trace/(?:breakpoint|BPT) trap \(core|Signal: Trace/|caught signal 5\b|received signal SIGTRAP|by signal SIGTRAP|status=5/TRAP|^zsh: trace trap`),
}, {
	Category: job.CoreDump, Signature: "sigsys", Confidence: 0.9,
	Hint:    "allow the call in the container's seccomp profile",
	Needles: []string{"bad system call", "signal sigsys", "31/sys"},
	Match:   textmatch.New(`(?i)^(?:\S+: )*bad system call(?: \(core dumped\))?$|Signal: Bad system call|received signal SIGSYS|by signal SIGSYS|status=31/SYS`),
}, {
	Category: job.CoreDump, Signature: "child-abort", Confidence: 0.8, Traits: rule.Generic,
	Meaning: "a child process of the program called abort(), or ended by an arithmetic error or an illegal instruction",
	Hint:    "the lines of the child before its end tell why; where there are none, run it in a debugger",
	Classes: []string{"*"},
	Needles: []string{"sigabrt", "sigfpe", "sigill", "exited with -6", "exit code -6", "exitcode -6", "code 134", "status 134", "code: -6", "killed by signal: aborted"},
	Match:   textmatch.New(`SIG(?:ABRT|FPE|ILL)\b|killed by signal: Aborted|(?:exit(?:ed)?|exitcode|returned|code:?|status)(?: with)?(?: code| status)?[ =:]*(?:-6|134)\b`),
}}
