package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var killed = []rule.Rule{{
	Category: job.Killed, Signature: "sigkill", Confidence: 0.9, Traits: rule.Generic,
	Meaning: "somebody killed the process, and no record says that memory was short",
	Hint:    "look for who may kill: a person, a batch system's limits, a container's memory limit; where the kernel log cannot be read, memory may still be the reason",
	Text:    "killed by ${signal}, which did not come from gangrun; no record of a memory shortage was found", Ends: rule.Ends{Signals: []int{9}},
}, {
	Category: job.Killed, Signature: "sigterm", Confidence: 0.9, Traits: rule.Generic,
	Meaning: "somebody asked the process to end; it was not gangrun",
	Hint:    "look for who sends it: a batch system before it takes the host away, a person, a launcher inside the rank",
	Text:    "ended by ${signal}, which did not come from gangrun", Ends: rule.Ends{Signals: []int{15}},
}, {
	Category: job.Killed, Signature: "sighup", Confidence: 0.9, Traits: rule.Generic,
	Meaning: "the terminal or session of the process ended",
	Hint:    "start the run with --detach, or from a session that stays",
	Text:    "ended by ${signal}: its terminal or session ended", Ends: rule.Ends{Signals: []int{1}},
}, {
	Category: job.Killed, Signature: "sigint", Confidence: 0.8, Traits: rule.Cascade | rule.Generic,
	Meaning: "somebody interrupted the process",
	Hint:    "an interrupt came from outside gangrun: a person or a launcher inside the rank",
	Text:    "ended by ${signal}, which did not come from gangrun", Ends: rule.Ends{Signals: []int{2}},
}, {
	Category: job.Killed, Signature: "worker-killed", Confidence: 0.85, Traits: rule.Generic,
	Meaning: "a process that the rank started, such as a data worker, was killed",
	Hint:    "mostly memory: use fewer workers or smaller batches; the kernel log tells who killed it",
	Classes: []string{"*"},
	Needles: []string{"is killed by signal: ", "exited unexpectedly", "terminated with signal sigkill"},
	Unless:  textmatch.New(`SIG(?:SEGV|BUS)|Bus error|exited unexpectedly with exit code [1-9]`),
	Match:   textmatch.New(`worker \(pid (?P<pid>\d+)\) is killed by signal: (?:Killed|Terminated|Aborted)|\(pids?\(?s?\)? (?P<pid>\d+)[^)]*\) exited unexpectedly|terminated with signal SIGKILL`),
}, {
	Category: job.Killed, Signature: "signal", Confidence: 0.9, Traits: rule.Generic,
	Meaning: "a signal that does not mean a fault ended the process (SIGUSR1, SIGUSR2, SIGALRM, ...)",
	Hint:    "the program does not handle a signal that it or its batch system sends",
	Text:    "ended by ${signal}, which it does not handle", Ends: rule.Ends{Signals: []int{10, 12, 14, 16, 23, 26, 27, 29, 30}},
}, {
	Category: job.Killed, Signature: "told-to-end", Confidence: 0.6, Traits: rule.Cascade,
	Meaning: "the program says that it was interrupted or asked to end",
	Hint:    "look for the rank that failed first, and for who sends signals: a batch system, a person",
	Classes: []string{rule.Message},
	Match:   textmatch.New(`(?i)\bsig(?:term|int|hup|usr1|usr2)\b|\b(?:received|caught|got) (?:\w+ )?signal\b|\bsignal (?:15|2)\b|\b(?:interrupted|cancell?ed|killed|terminated) by\b`),
}, {
	Category: job.Killed, Signature: "told-to-end", Confidence: 0.6, Traits: rule.Cascade | rule.Generic,
	Hint:    "look for the rank that failed first, and for who sends signals: a batch system, a person",
	Classes: []string{"*"},
	Match:   textmatch.New(`(?i)\b(?:received|caught|got) (?:signal )?sigterm\b|\bsigterm (?:was )?received\b`),
}, {
	Category: job.Killed, Signature: "worker-killed", Confidence: 0.85, Traits: rule.Generic,
	Hint:    "look at the kernel log (dmesg) for an out-of-memory record, and for who else may kill: a person, a limit of the container",
	Classes: []string{"CalledProcessError", "ProcessExitedException", "RuntimeError"},
	Needles: []string{"<signals.sigkill: 9>", "signal sigkill", "exited with -9", "exit code -9", "exitcode -9", "exit status -9", "exit status 137", "exit code 137"},
}, {
	Category: job.Killed, Signature: "worker-killed", Confidence: 0.85, Traits: rule.Generic,
	Hint:    "mostly memory: give workers more of it, or more workers less to do; the logs of the workers and the kernel log tell who killed them",
	Classes: []string{"KilledWorker", "LostWorkerError", "ExecutorLostFailure", "WorkerDiedError", "LokyProcessTerminated", "BrokenProcessPool", "TerminatedWorkerError", "WorkerLostError"},
	Unless:  textmatch.New(`SIG(?:SEGV|BUS|ABRT)`),
}, {
	Category: job.Killed, Signature: "sigkill", Confidence: 0.7, Traits: rule.Generic,
	Hint:    "look for who may kill: a person, a batch system's limits, a container's memory limit; where the kernel log cannot be read, memory may still be the reason",
	Needles: []string{"exit signal killed", "] killed ", " killed  ", "died from signal 9", "terminated with signal 9", "terminated by signal 9", "terminated by signal sigkill", "killed by sigkill", "zsh: killed", "signal: killed", "killed signal terminated program", "9/kill", "] killed", "exited with code 137", "exit code 137", "exit code: 137", "exit status 137", "exit code is 137", "exited with signal sigkill", "command failed signal sigkill", "exitcode: -9", "exit code -9", "error 137", "failed liveness probe"},
	Match:   textmatch.New(`PE RANK (?P<rank>\d+) exit signal Killed|(?:rank (?P<rank>\d+)\)? )?(?:died from|terminated (?:with|by)) signal (?:9\b|SIGKILL)|rank: (?P<rank>\d+), pid: \d+\) terminated with signal 9\b|killed by SIGKILL|^zsh: killed|^\[\d+\] +[+-]? *\d+ killed\b|signal: killed$|Killed signal terminated program|status=9/KILL|\*\*\* .*\] (?:Killed|Error 137)|(?i)\bexit(?:ed)?(?: with)? (?:code|status):? (?:is )?137\b|exit(?: |ed with )?code:? -9\b|exit(?:ed)? with signal SIGKILL|command failed signal SIGKILL|\bContainer \S+ failed liveness probe`),
	Unless:  textmatch.New(`(?i)warn|possible|for example|e\.g\.`),
}, {
	Category: job.Killed, Signature: "sigkill", Confidence: 0.9, Traits: rule.Generic | rule.Kernel,
	Hint:    "look for who may kill: the end of a login session (loginctl enable-linger), a service that stops, a watcher of the site",
	Text:    "the host recorded that it killed the process (${title})",
	Needles: []string{"with signal sig", "sending sig", "(signal 9)", "stray process"},
	Match:   textmatch.New(`: Killing process (?P<pid>\d+) \(.*\) with signal SIG(?:KILL|TERM)|\bpid[ =:]{1,2}(?P<pid>\d+)\b.*\bsending SIG(?:KILL|TERM)\b|(?i)\bkilled (?:\d+ )?(?:stray|leftover|user|remaining) process`),
	Unless:  textmatch.New(`(?i)\b(?:memory|rss)\b`),
}}
