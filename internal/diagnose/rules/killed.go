package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var killed = []Rule{{
	Category: job.Killed, Signature: "sigkill", Confidence: 0.9, Traits: Generic,
	Meaning: "somebody killed the process, and no record says that memory was short",
	Hint:    "look for who may kill: a person, a batch system's limits, a container's memory limit; where the kernel log cannot be read, memory may still be the reason",
	Text:    "killed by ${signal}, which did not come from gangrun; no record of a memory shortage was found", Ends: Ends{Signals: []int{9}},
}, {
	Category: job.Killed, Signature: "sigterm", Confidence: 0.9, Traits: Generic,
	Meaning: "somebody asked the process to end; it was not gangrun",
	Hint:    "look for who sends it: a batch system before it takes the host away, a person, a launcher inside the rank",
	Text:    "ended by ${signal}, which did not come from gangrun", Ends: Ends{Signals: []int{15}},
}, {
	Category: job.Killed, Signature: "sighup", Confidence: 0.9, Traits: Generic,
	Meaning: "the terminal or session of the process ended",
	Hint:    "start the run with --detach, or from a session that stays",
	Text:    "ended by ${signal}: its terminal or session ended", Ends: Ends{Signals: []int{1}},
}, {
	Category: job.Killed, Signature: "sigint", Confidence: 0.8, Traits: Cascade | Generic,
	Meaning: "somebody interrupted the process",
	Hint:    "an interrupt came from outside gangrun: a person or a launcher inside the rank",
	Text:    "ended by ${signal}, which did not come from gangrun", Ends: Ends{Signals: []int{2}},
}, {
	Category: job.Killed, Signature: "worker-killed", Confidence: 0.85, Traits: Generic,
	Meaning: "a process that the rank started, such as a data worker, was killed",
	Hint:    "mostly memory: use fewer workers or smaller batches; the kernel log tells who killed it",
	Classes: []string{"*"},
	Needles: []string{"is killed by signal: ", "exited unexpectedly", "terminated with signal sigkill"},
	Unless:  textmatch.New(`SIG(?:SEGV|BUS)|Bus error`),
	Match:   textmatch.New(`worker \(pid (?P<pid>\d+)\) is killed by signal: (?:Killed|Terminated|Aborted)|\(pids?\(?s?\)? (?P<pid>\d+)[^)]*\) exited unexpectedly|terminated with signal SIGKILL`),
}, {
	Category: job.Killed, Signature: "signal", Confidence: 0.9, Traits: Generic,
	Meaning: "a signal that does not mean a fault ended the process (SIGUSR1, SIGUSR2, SIGALRM, ...)",
	Hint:    "the program does not handle a signal that it or its batch system sends",
	Text:    "ended by ${signal}, which it does not handle", Ends: Ends{Signals: []int{10, 12, 14, 16, 23, 26, 27, 29, 30}},
}, {
	Category: job.Killed, Signature: "told-to-end", Confidence: 0.6, Traits: Cascade,
	Meaning: "the program says that it was interrupted or asked to end",
	Hint:    "look for the rank that failed first, and for who sends signals: a batch system, a person",
	Classes: []string{Message},
	Match:   textmatch.New(`(?i)\bsig(?:term|int|hup|usr1|usr2)\b|\b(?:received|caught|got) (?:\w+ )?signal\b|\bsignal (?:15|2)\b|\b(?:interrupted|cancell?ed|killed|terminated) by\b`),
}, {
	Category: job.Killed, Signature: "worker-killed", Confidence: 0.8, Traits: Generic,
	Hint:    "look at the kernel log (dmesg) for an out-of-memory record, and for who else may kill: a person, a limit of the container",
	Classes: []string{"BrokenProcessPool", "TerminatedWorkerError", "WorkerLostError"},
	Unless:  textmatch.New(`SIG(?:SEGV|BUS|ABRT)`),
}, {
	Category: job.Killed, Signature: "worker-killed", Confidence: 0.85, Traits: Generic,
	Hint:    "look at the kernel log (dmesg) for an out-of-memory record, and for who else may kill: a person, a limit of the container",
	Classes: []string{"CalledProcessError", "ProcessExitedException", "RuntimeError"},
	Needles: []string{"<signals.sigkill: 9>", "signal sigkill", "exited with -9", "exit code -9", "exitcode -9", "exit status -9", "exit status 137", "exit code 137"},
}}
