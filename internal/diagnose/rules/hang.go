package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const hangHint = "find out where the rank stands (py-spy dump, gdb): a lock, a read that never ends, a collective that another rank does not join"

// ends matches the words with which a supervising program says what it does to the program that hangs.
var ends = textmatch.New(`(?i)\b(?:kill\w*|abort\w*|terminat\w*|exiting|_?exit\b|stopp?\w*|end(?:ing|ed) the|(?:run|job) (?:was |is )?(?:ended|stopped)|shut\w*|dump\w*|sending|sent|sig[a-z]{2,5}|qdel|scancel|giving up|restart\w*|evict\w*|drain\w*|cordon\w*|replac\w*|exclud\w*|remov\w*|(?:collect|tak|writ|gather)\w* (?:the )?stacks|stacks (?:taken|written|collected))\b`)

const (
	// still matches the words which say that something makes no progress.
	still = `(?:\b(?:no|not|without|hasn't|haven't|did not|didn't|never|nothing)\b.{0,40}\b(?:progress\w*|output|stdout|heartbeats?|steps?|iterations?|complet\w*|advanc\w*|respon\w*|activity|written|printed|logged|updat\w*|finish\w*|moved|modified|touched|answer\w*|beat\w*|seen|heard)|\b(?:unresponsive|inactive|hung|hang|stuck|stalled|deadlock\w*|blocked|frozen|looks dead|last (?:heartbeat|output|line|step|update))\b|\b(?:has been|still|stayed|remained) at \S+(?: \d+)? (?:for|after|since)\b|\bbelow 1 ?%)`
	// long matches a duration or the time since when.
	long = `(?:\b\d+(?:\.\d+)? ?(?:s|sec\w*|m|min\w*|h|hrs?|hours?)\b|\bsince \d{1,2}:\d\d)`
)

var hang = []rule.Rule{{
	Category: job.Hang, Signature: "no-progress", Confidence: 0.8, Traits: rule.Verdict,
	Meaning: "the program that supervises the job found no progress, and ended the job",
	Hint:    hangHint,
	Needles: []string{"progress", "unresponsive", "heartbeat", "watchdog", "stuck", "hung", "not moved", "hang", "deadlock", "stalled", "stall-", "blocked for", "no output", "no stdout", "nothing ", "still at ", "silence", "silent", "did not complete", "didn't complete", "looks dead", "has been at", "supervis", "monitor", "frozen", "hanging", "last output", "last line"},
	Match: textmatch.New(`(?i)` + still + `.{0,80}` + long + `|` + long + `.{0,60}` + still + `|\bdeadlock (?:found|detected)\b` + `|\b(?:looks?|seems?|appears?|probably|presumably|believed|assumed|considered|deemed|declared)(?: to (?:be|have))?(?: \w+)? (?:hung|stuck|hanging|stalled|(?:dead-?)?locked(?: up)?|deadlocked|frozen)\b|\b(?:probable|possible|suspected|potential|likely|apparent) (?:deadlock|live-?lock|hang)\b|` +
		`\b(?:job|run|training|process|program|rank|worker|simulation|loop) (?:has |is |was )?(?:hung|stuck|stalled|deadlocked|frozen)\b.{0,40}\b(?:kill|abort|terminat|stopp)ing\b|` +
		`\b(?:end|stopp|kill|terminat|abort|cancell?)(?:ing|ed)\b.{0,30}\b(?:step|job|run|application|program|process\w*|ranks?)\b\W.{0,30}\b(?:(?:no|lack of|without) (?:\w+ )?progress|hang|hung|stuck|stall(?:ed)?|silen(?:ce|t)|no heartbeats?|unresponsive|deadlock\w*)\b|\b(?:step|job|run|training) (?:was )?(?:ended|stopped|killed|terminated) by (?:the |a )?(?:\w+ )?(?:heartbeat|hang|stall|progress)\b`).And(ends),
	Unless: textmatch.New(`(?i)\bif no\b|\bin (?:the last )?\d+ (?:\w+ )?(?:iterations|cycles|sweeps|generations|epochs)\b|\benabled\b|\barmed\b|\bwarn(?:ing)?\b|will (?:be )?(?:kill|abort|stop|end|restart)|timeout ?[:=]|wall ?time|nccl|gloo|collective|barrier|allreduce|blocked for more than|soft lockup|kubelet|etcd|\bretry|connect|http|download|socket|try restarting transaction|process group|coordination|store|no progress bar|marked by "!"|data ?loader|watchdog got stuck`),
}, {
	Category: job.Hang, Signature: "watchdog-stuck", Confidence: 0.8,
	Meaning: "a watchdog of a library found that the program makes no progress",
	Hint:    hangHint,
	Needles: []string{"watchdog got stuck for", "watchdog thread got stuck", "possible gil induced hang", "could not acquire gil within", "heartbeat monitor timed out", "possible watchdog hang"},
	Match:   textmatch.New(`watchdog (?:thread )?got stuck|GIL|[Hh]eartbeat monitor timed out|watchdog hang`),
}, {
	Category: job.Hang, Signature: "no-progress", Confidence: 0.8, Traits: rule.Verdict,
	Hint: hangHint,
	Needles: []string{"no progress", "hang detected", "appears to be hung", "appears hung", "appears to hang", "is hung", "job hang", "training hang", "hung task", "no output for", "with no output", "no new step", "no heartbeat", "no log output", "stuck for", "without progress", "not making progress",
		"making no progress", "hanging for", "has stalled", "stall detected", "hang suspected", "appears stuck", "seems to hang", "no step completed", "no step finished", "no step in the last", "no steps ", "watchdog: ", "no iteration", "last heartbeat", "no new output", "stalled for", "not progressed", "no update for", "hung for", "heartbeat timeout", "workload hang", "no activity", "no new log", "lack of heartbeats", "heartbeat for components", "get subsequent heartbeat", "get initial heartbeat", "exceeding", "hung:", "last log line", "considering the job hung", "job hung", "training hung", "section heartbeat", "not updated for", "not been updated for", "unchanged for", "not changed for", "has not changed", "hanging for", "not advanced", "did not advance", "stopped making progress", "hung rank", "ranks hung", "stalled rank", "hang: ", "hung process", "is stuck", "are stuck", "deadlock detected", "deadlock suspected", "declaring hang", "declared hung", "considered hung", "training stalled", "counter stuck", "possible deadlock", "seconds old", " s old", "has hung", "have hung", "been idle for", "idle for", "inactive for", "unresponsive for", "no response for", "silent for", "timed out without", "d state", "state d "},
	Match: textmatch.New(`(?i)\bno (?:\w+ )?(?:progress|output|new step|new output|new log\w*|heartbeats?|log output|step completed|iterations?|activity|update)\b.{0,40}\b(?:for|in|since|within|after)\b.{0,20}\d|\btoo long with no output\b|\b(?:hang|stall) (?:detected|suspected)|\b(?:appears?|seems?) (?:to (?:be )?)?(?:hung|hang|stuck|stalled)|\b(?:hung|stuck|stalled|hanging) for (?:more than |over )?(?:\d\d|\d+ ?(?:m|h))|` +
		`\bno (?:\w+ )?steps? (?:\w+ )?(?:finished|completed|done|made|taken|in the last)\b.{0,40}\d|\bwatchdog: .{0,40}\bno (?:\w+ )?(?:progress|step|heartbeat|output)\b|\bis hung\b|(?:without|not making|making no) progress\b|(?:job|training|workload) hang|heartbeat timeout|has stalled|not progressed|stopped making progress|lack of heartbeats|no heartbeat for components|did not get (?:subsequent|initial) heartbeat|section '[^']+' open for .*exceeding|\b(?:rank|worker|process|job|task)s? ?\S* (?:has |have |is |are )?hung\b|considering the \w+ hung|last (?:log line|output|step|iteration|update|heartbeat) (?:is|was) (?:more than |over )?\d+ ?\w* (?:old|ago)\b|(?:heartbeat|log|step|counter|iteration|output|progress)\b.{0,60}\b(?:not (?:been )?(?:updated|changed|advanced|grown)|unchanged|did not advance|has not (?:changed|advanced|moved))\b.{0,20}\bfor\b.{0,20}\d|` +
		`\b(?:rank|worker|process|job|training|task)\b.{0,40}\b(?:is|are|seems|appears) stuck\b|deadlock (?:detected|suspected)|declar(?:ing|ed) (?:a )?(?:hang|hung)|considered hung|training stalled|counter stuck at \d|\b(?:idle|inactive|silent|unresponsive) for (?:more than |over )?\d+.{0,60}(?:kill|abort|terminat|stop|restart)`),
	Unless: textmatch.New(`(?i)watchdog got stuck|blocked for more than|soft lockup|jax|coordination|kubelet|etcd|\bretry|timeout ?[:=]|\b(?:enabled|disabled|armed)\b|\((?:no|after) |\bif no\b|will (?:be )?(?:kill|abort|stop|end|restart)|data ?loader stalled|waiting for data|\brecovered|is not stuck|\bin (?:the last )?\d+ (?:\w+ )?(?:iterations|cycles|sweeps|generations|epochs)\b`),
}, {
	Category: job.Hang, Signature: "no-progress", Confidence: 0.8,
	Hint:    hangHint,
	Needles: []string{"***timeout", "(timeout)"},
	// Of CTest.
	Match: textmatch.New(`^ *\d+/\d+ Test +#\d+: .*\*\*\*Timeout +\d|^\s+\d+ - \S+ \(Timeout\)`),
}, {
	Category: job.Hang, Signature: "dumped-traceback", Confidence: 0.75, Traits: rule.Generic,
	Meaning: "the program did not end in time, and the timer of Python's faulthandler printed where it was",
	Hint:    hangHint,
	Needles: []string{"timeout ("},
	Match:   textmatch.New(`^Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$`),
}, {
	Category: job.Hang, Signature: "kernel-hang", Confidence: 0.9, Traits: rule.Kernel,
	Meaning: "the kernel found a process that has waited for very long, or a CPU that is stuck",
	Hint:    "look at the calls that the kernel lists after the record: nfs_ or ll_ in them mean a file server that does not answer",
	Text:    "the kernel found it stuck (${title})",
	Needles: []string{"soft lockup", "blocked for more than", "hung_task", "rcu_sched detected stalls", "hard lockup"},
	Match:   textmatch.New(`soft lockup - CPU#\d+ stuck.*\[(?:[^\]]*):(?P<pid>\d+)\]|task \S+:(?P<pid>\d+) blocked for more than|hard LOCKUP|detected stalls`),
}, {
	Category: job.Hang, Signature: "no-progress", Confidence: 0.85,
	Hint:    hangHint,
	Classes: []string{"Failed", "go panic"},
	Needles: []string{"timeout >", "timeout (>", "all goroutines are asleep"},
}, {
	Category: job.Hang, Signature: "no-progress", Confidence: 0.8, Traits: rule.Verdict,
	Hint:    hangHint,
	Needles: []string{"no output", "no log", "no line", "no message", "no step for", "no progress for", "no new line", "no sign of life", "deadlock", "last message", "last sign", "last output", "last line", "presumed dead", "not grown", "stands still", "stood still", "silence monitor", "failed: timeout ", "silent for", "stack dump after"},
	Match:   textmatch.New(`(?i)\b(?:detected|found|reports?|causes?) (?:an? |the )?(?:\w+ )?deadlock\b|\bdeadlock (?:was )?(?:found|detected)\b|\bno (?:new )?(?:output|progress|steps?|lines?|messages?) since \d\d?:\d\d\b|\blast (?:message|sign|output|line|word)s?\b.{0,40}\b\d+ ?\w+ ago\b|\b(?:log|output|file|counter)\b.{0,40}\b(?:not|n't) (?:grown|changed|moved|advanced) (?:for|in|since)\b.{0,10}\d|\bno (?:new |log )?(?:output|steps?|progress|lines?|messages?|entr(?:y|ies)|sign of life)\b(?: \w+){0,4}? (?:for|in|since) (?:more than |over |the last )?\d+(?:\.\d+)? ?(?:s|sec\w*|m|min\w*|h|hours?)\b|\bst(?:ands|ood) still\b.{0,40}\d|\bsilence monitor\b|^(?:E +)?Failed: Timeout \(?>\d`),
	Unless:  textmatch.New(`(?i)\bif no\b|\bin (?:the last )?\d+ (?:\w+ )?(?:iterations|cycles|sweeps|generations|epochs)\b|\benabled\b|\barmed\b|\bwarn(?:ing)?\b|will (?:be )?(?:kill|abort|stop|end|restart)|timeout ?[:=]|wall ?time|try restarting transaction|database|\bsql|collective|nccl|gloo`),
}}
