package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const downHint = "see on its console or in its logs why the host went down (last -x, journalctl -b -1); with --retries, and room on other hosts, the next attempt does without it"

var hostLost = []rule.Rule{{
	Category: job.HostLost, Signature: "host-silent", Confidence: 1,
	Meaning: "there was no contact with a host on which ranks ran: the host or the network failed",
	Hint:    "see whether the host is up and its network works; with --retries, and room on other hosts, the next attempt does without it",
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonHostSilent}},
}, {
	Category: job.HostLost, Signature: "host-gone", Confidence: 1,
	Meaning: "a host closed its connections and does not answer: it crashed, is rebooting or was shut down",
	Hint:    downHint,
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonHostGone}},
}, {
	Category: job.HostLost, Signature: "host-restarted", Confidence: 1,
	Meaning: "a host was booted again while ranks ran on it: it crashed, lost power or was rebooted",
	Hint:    downHint,
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonHostRestarted}},
}, {
	Category: job.HostLost, Signature: "controller-paused", Confidence: 1, Retry: job.RetryAgain,
	Meaning: "gangrun itself was stopped or suspended for so long that agents ended their ranks",
	Hint:    "gangrun was stopped (Ctrl-Z, a suspended machine, a frozen container) or its machine is overloaded; --orphan-grace has agents wait longer",
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonControllerPaused}},
}, {
	Category: job.HostLost, Signature: "agent-gone", Confidence: 1,
	Meaning: "gangrun's agent on a host was killed while ranks ran there, and the ranks ended with it",
	Hint:    "see on the host who killed it: the OOM killer (dmesg), a limit on the login session (loginctl, KillUserProcesses) or a person",
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonAgentGone}},
}, {
	Category: job.HostLost, Signature: "container-ended", Confidence: 1, Retry: job.RetryAgain,
	Meaning: "the container of ranks ended while they ran: somebody killed it, its shim (a process of containerd), or the agent in it",
	Hint:    "see on the host who killed it: containerd's log (journalctl -u containerd), the OOM killer (dmesg) or a person",
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonContainerEnded}},
}, {
	Category: job.HostLost, Signature: "no-container", Confidence: 1,
	Meaning: "a host cannot start the container of its ranks",
	Hint:    "gangrun preflight looks at the image on every host; containerd's log on ${host|that host} may say more (journalctl -u containerd)",
	Text:    "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}, Reasons: []job.Reason{job.ReasonNoContainer}},
}, {
	Category: job.HostLost, Signature: "not-reached", Confidence: 1,
	Meaning: "gangrun could not reach a host to start ranks there, or to find them after a takeover",
	Hint:    "see whether the host is up and its network works; with --retries, and room on other hosts, the next attempt does without it",
	Text:    "its host is not reached: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonNotReached}},
}, {
	Category: job.HostLost, Signature: "rank-lost", Confidence: 1,
	Meaning: "it is not known how a rank ended",
	Hint:    "the host, its network or gangrun's agent on it is gone: look at it before it is used again",
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}},
}, {
	Category: job.HostLost, Signature: "output-lost", Confidence: 1, Retry: job.RetryNever,
	Meaning: "the ranks ended well, but some of their output did not arrive from their host",
	Hint:    "the ranks themselves ended well: the notes of the run say where on the host the rest of their output is",
	Text:    "${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Exited}, Reasons: []job.Reason{job.ReasonOutputLost}},
}, {
	Category: job.HostLost, Signature: "node-failure", Confidence: 0.95,
	Meaning: "the batch system says that a node failed",
	Hint:    "leave that node out; its administrators will want to know",
	Needles: []string{"due to node failure", "srun: error: node failure on", "node failure"},
	Match:   textmatch.New(`(?:Node failure on |ON )(?P<host>[\w.-]+)|(?i)node failure`),
}, {
	Category: job.HostLost, Signature: "host-reported-lost", Confidence: 0.85, Traits: rule.Verdict,
	Meaning: "the batch system, the launcher or another host reports that a host is gone",
	Hint:    "see whether the host is up: its console, its logs (last -x, journalctl -b -1); leave it out until it is repaired",
	Needles: []string{"nodelost", "node lost", "node is not ready", "nodenotready", "node not ready", "node-unreachable", "node unreachable", "unreachable", "node down", "node is down", "nodefailure", "node_fail", "lost communication with a remote daemon", "no ping", "not answer", "not respond", "not repl", "no answer", "no reply", "unhealthy tasks", "tasks are unhealthy", "host is down", "host down", "rebooted", "unexpected reboot", "kernel panic",
		"power loss", "lost heartbeat", "not responding, setting down", "node failed", "node died", "lost connection to node", "lost contact with node", "heartbeats from node", "is dead", "on failed node", "unresponsive", "power is off", "ping to", "is down", "went down", "powered off", "is offline", "became unavailable", "is unavailable", "host unavail", "sister_eof", "job disconnected too long", "job reconnection failed", "type=node-failure", "lost contact with", "lost connection to", "broker disconnected", "stopped posting node status", "nodestatusunknown", "system status check", "has crashed", "node was terminated", "node has died", "nodes failed", "not responding", "hardware issue", "instance failure", "instance terminated", "vm was terminated", "node was lost", "unhealthy node", "node is unhealthy", "health check failed on node", "failed node", "marked dead", "declared dead", "does not answer", "does not respond", "lost node", "node failure", "machine check", "ipmi", "disappeared", "stopped responding", "marked down", "does not ping", "could not reach host", "cannot reach host", "lost* node", "hardware failure", "host error", "unplanned", "hosterror", "power off/down"},
	Match: textmatch.New(`NodeLost|NodeNotReady|(?i)\b(?P<host>[a-z][\w.-]*\d[\w.-]*) (?:does not|doesn.t|did not|no longer) (?:answer|respond|repl)\w*\b.{0,60}\b(?:down|dead|lost|gone|off|drain\w*|ending|abort\w*|stopp\w*|kill\w*)\b|(?i)\b(?:host |node )?(?P<host>[a-z][\w.-]*\d[\w.-]*) (?:is |has )?(?:gone|vanished|lost|dead|unreachable|silent|down|disappeared)\b.{0,20}\bno (?:ping|answer|reply|heartbeat|response)s?\b|(?i)\bnode (?:\S+ )?(?:is )?(?:not ready|unreachable|lost|down|dead|gone|failed|died|disappeared|rebooted|offline)\b|node[.\w/-]*unreachable|NODE_FAIL|lost communication with a remote daemon|following tasks are unhealthy|unhealthy tasks|\b(?:node|host) (?:\S+ )?(?:is )?unresponsive|chassis power is off|ping to \S+ .*failed \d+ times|on failed node|SISTER_EOF|job disconnected too long|job reconnection failed|type=node-failure|broker disconnected|stopped posting node status|NodeStatusUnknown|(?:system|instance) status check.{0,20}fail|fail\w* .{0,30}(?:system|instance) status check|node (?:was terminated|has died)|(?:execution )?host (?:\S+ )?(?:became|is) (?:unavailable|unreachable)|host unavail\b|faulty nodes?\b.{0,40}(?:detected|found|remov|exclu)|(?:hosts?|nodes?|machine|instance|server)\b.{0,60}\b(?:not responding|stopped responding|is down|went down|has (?:died|failed|rebooted|crashed)|unexpectedly rebooted|power(?:ed)? off|lost power|hardware failure|is dead|marked dead|declared dead|does not (?:answer|respond)|unreachable since)|` +
		`lost (?:contact|connection|heartbeat\w*) (?:with|to|from) (?:node|host|agent|worker|machine) ?(?P<host>[\w.-]*)|missed too many heartbeats|hasn't sent heartbeat|lost (?:contact|connection|communication) (?:with|to) .{0,40}\bon (?:node|host) ?(?P<host>[\w.-]*)|raylet.*(?:died|dead)|(?:host|instance) (?:error|hardware failure)|kernel panic|instances\.hostError|\b(?:node|host) (?P<host>[\w.-]+) (?:is |was )?(?:marked down|does not ping)|(?:could not|cannot|unable to) reach (?:host|node) (?P<host>[\w.-]+)|\*lost\* node|\bPower Unit\b.*\bPower off/down\b.*\bAsserted`),
	Find:   textmatch.New(`(?i)\b(?:node|host|on) (?P<host>[a-z][\w.-]*\d[\w.-]*)|task:(?P<rank>\d+)`),
	Unless: textmatch.New(`(?i)please check|\bmake sure\b|possible (?:reason|cause)|NoExecute|NoSchedule|toleration|network is unreachable|host is unreachable|destination|host unreachable|retry|will be rebooted|object|weak|\bago\b|uptime|skipp|excluded|nfs|lustre|file ?server|\bOSTs?\b|storage|\b(?:link|port|database|server|service|proxy|endpoint) (?:\S+ )?is (?:down|offline|unavailable)`),
}, {
	Category: job.HostLost, Signature: "kernel-panic", Confidence: 0.95, Traits: rule.Kernel,
	Meaning: "a host crashed, or its processor or memory reported an error that could not be corrected",
	Hint:    downHint,
	Text:    "the host failed (${title})",
	Needles: []string{"kernel panic", "machine check", "[hardware error]", "edac", "uncorrected error", "fatal machine", "oops: ", "unable to handle kernel", "unable to handle page fault", "kernel null pointer", "power supply", "caterr"},
	Match:   textmatch.New(`Kernel panic|Oops: [\w ]*\[#\d+\]|[Uu]nable to handle (?:kernel|page fault)|kernel NULL pointer dereference|[Ff]atal [Mm]achine [Cc]heck|Machine check: Processor context corrupt|EDAC MC\d+: \d+ UE|Uncorrect(?:ed|able) (?:hardware |memory )?error|Hardware Error\]: (?:.*[Uu]ncorrected|.*event severity: (?:fatal|recoverable))`),
}, {
	Category: job.HostLost, Signature: "host-rebooted", Confidence: 0.9, Traits: rule.Kernel,
	Meaning: "a host was booted again while the job ran there, as its kernel log shows",
	Hint:    downHint,
	Text:    "the host was booted again (${title})",
	Needles: []string{"linux version ", "-- reboot --", "-- boot ", "command line: boot_image"},
	Match:   textmatch.New(`kernel: (?:\[ *0\.0+\] )?Linux version \d|^\[ *0\.0+\] Linux version|-- Reboot --|-- Boot [0-9a-f]|Command line: BOOT_IMAGE`),
}, {
	Category: job.HostLost, Signature: "host-reported-lost", Confidence: 0.85,
	Hint:    "see whether the host is up: its console, its logs (last -x, journalctl -b -1); leave it out until it is repaired",
	Needles: []string{"ssh: connect to host", " closed by remote host"},
	Match:   textmatch.New(`^Connection to (?P<host>\S+) closed by remote host|ssh: connect to host (?P<host>\S+) port \d+: (?:Connection timed out|No route to host)`),
}, {
	Category: job.HostLost, Signature: "host-reported-lost", Confidence: 0.9,
	Hint:    "see whether the host is up: its console, its logs (last -x, journalctl -b -1); leave it out until it is repaired",
	Classes: []string{"ActorDiedError", "RayActorError", "ActorUnavailableError", "WorkerCrashedError", "RayTaskError", "NodeDiedError", "ObjectLostError", "OwnerDiedError", "WorkerGroupError"},
	Needles: []string{" died", "node has died", "node it was running on", "node was terminated", "node died", "node is dead", "node failure", "node id"},
	Match:   textmatch.New(`(?i)node (?:\S+ )?(?:has |is )?(?:died|dead)|node (?:it )?was (?:terminated|running on is dead|preempted)|node failure|running on (?:\S+ ){0,3}is dead`),
}, {
	Category: job.HostLost, Signature: "jax-task-lost", Confidence: 0.8,
	Meaning: "the coordination service of JAX or TensorFlow no longer hears from a task",
	Hint:    "look at the host of task ${rank|named}: whether it is up, and what its own log and its kernel's say",
	Needles: []string{"heartbeat timeout", "stopped sending heartbeats", "tasks are unhealthy", "has been set to error in coordination service", "unhealthy tasks"},
	Match:   textmatch.New(`task:(?P<rank>\d+) heartbeat timeout|(?:unhealthy|stopped sending heartbeats).{0,80}/task:(?P<rank>\d+)|/task:(?P<rank>\d+) has been set to ERROR in coordination service: UNAVAILABLE`),
	Unless:  textmatch.New(`(?i)preemption notice`),
}}
