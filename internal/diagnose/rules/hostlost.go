package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const downHint = "see on its console or in its logs why the host went down (last -x, journalctl -b -1); with --retries, and room on other hosts, the next attempt does without it"

var hostLost = []Rule{{
	Category: job.HostLost, Signature: "host-silent", Confidence: 1,
	Meaning: "there was no contact with a host on which ranks ran: the host or the network failed",
	Hint:    "see whether the host is up and its network works; with --retries, and room on other hosts, the next attempt does without it",
	Text:    "lost: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonHostSilent}},
}, {
	Category: job.HostLost, Signature: "host-gone", Confidence: 1,
	Meaning: "a host closed its connections and does not answer: it crashed, is rebooting or was shut down",
	Hint:    downHint,
	Text:    "lost: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonHostGone}},
}, {
	Category: job.HostLost, Signature: "host-restarted", Confidence: 1,
	Meaning: "a host was booted again while ranks ran on it: it crashed, lost power or was rebooted",
	Hint:    downHint,
	Text:    "lost: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonHostRestarted}},
}, {
	Category: job.HostLost, Signature: "controller-paused", Confidence: 1, Retry: job.RetryAgain,
	Meaning: "gangrun itself was stopped or suspended for so long that agents ended their ranks",
	Hint:    "gangrun was stopped (Ctrl-Z, a suspended machine, a frozen container) or its machine is overloaded; --orphan-grace has agents wait longer",
	Text:    "lost: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonControllerPaused}},
}, {
	Category: job.HostLost, Signature: "agent-gone", Confidence: 1,
	Meaning: "gangrun's agent on a host was killed while ranks ran there, and the ranks ended with it",
	Hint:    "see on the host who killed it: the OOM killer (dmesg), a limit on the login session (loginctl, KillUserProcesses) or a person",
	Text:    "lost: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonAgentGone}},
}, {
	Category: job.HostLost, Signature: "container-ended", Confidence: 1, Retry: job.RetryAgain,
	Meaning: "the container of ranks ended while they ran: somebody killed it, its shim, or the agent in it",
	Hint:    "see on the host who killed it: containerd's log (journalctl -u containerd), the OOM killer (dmesg) or a person",
	Text:    "lost: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonContainerEnded}},
}, {
	Category: job.HostLost, Signature: "no-container", Confidence: 1,
	Meaning: "a host cannot start the container of its ranks",
	Hint:    "gangrun preflight looks at the image on every host; containerd's log on ${host|that host} may say more (journalctl -u containerd)",
	Text:    "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}, Reasons: []job.Reason{job.ReasonNoContainer}},
}, {
	Category: job.HostLost, Signature: "not-reached", Confidence: 1,
	Meaning: "gangrun could not reach a host to start ranks there, or to find them after a takeover",
	Hint:    "see whether the host is up and its network works; with --retries, and room on other hosts, the next attempt does without it",
	Text:    "its host is not reached: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonNotReached}},
}, {
	Category: job.HostLost, Signature: "rank-lost", Confidence: 1,
	Meaning: "it is not known how a rank ended",
	Hint:    "the host, its network or gangrun's agent on it is gone: look at it before it is used again",
	Text:    "lost: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Lost}},
}, {
	Category: job.HostLost, Signature: "output-lost", Confidence: 1, Retry: job.RetryNever,
	Meaning: "the ranks ended well, but some of their output did not arrive from their host",
	Hint:    "the ranks themselves ended well: the notes of the run say where on the host the rest of their output is",
	Text:    "${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Exited}, Reasons: []job.Reason{job.ReasonOutputLost}},
}, {
	Category: job.HostLost, Signature: "node-failure", Confidence: 0.95,
	Meaning: "the batch system says that a node failed",
	Hint:    "leave that node out; its administrators will want to know",
	Needles: []string{"due to node failure", "srun: error: node failure on", "node failure"},
	Match:   textmatch.New(`(?:Node failure on |ON )(?P<host>[\w.-]+)|(?i)node failure`),
}}
