package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const (
	// fruitless matches the reasons why a run promises no further improvement.
	fruitless = `(?:\bearly[- ]?stop\w*|\bno (?:further |more )?gain\b|\b(?:rises|rising|risen|rose|worsen\w*|deteriorat\w*|(?:gets?|got|getting) worse)\b.{0,30}\b(?:points|evals?|evaluations|epochs|checks|times|rounds|intervals)\b|\bstop(?:s|ped|ping)? (?:\S+ ){0,4}early\b|\bend(?:ed|ing|s) (?:\S+ ){0,4}early\b|\bno improvement|(?:\bnot|n't|\bnever)(?: \w+)? (?:improv|decreas|increas)\w*|\bwithout improvement|\bplateau\w*|\bflat (?:for|over|since)\b|\bpatience\b|\bprun(?:ed|ing)\b|\bmedian (?:stop\w*|rule|of)\b|\b(?:worse|lower|higher) than (?:the )?median\b|\b(?:above|below) (?:the )?(?:median|rung)\b|\bhopeless|\bhalving\b|\bno (?:progress|reduction(?: of the \w+)?) in (?:the last )?\d+ (?:iterations|cycles|sweeps|generations|epochs)\b|\bfurther (?:iterations|cycles|steps|epochs) (?:is|are|would be) (?:pointless|useless|futile)\b|\b(?:reached|met) (?:the |its )?target\b)`
	// cut matches the words which say that the run is ended.
	cut = `\b(?:stop(?:s|ped|ping)|end(?:ed|ing)|terminat(?:es|ed|ing)|kill(?:s|ed|ing)|abort(?:s|ed|ing)|exit(?:s|ing)|prun(?:ed|ing)|quit(?:s|ting)|cutting|giving up|early-?stopped)\b`
)

// stoppedEarly has rules for programs that end themselves because a curve promises nothing more. They count only if
// the log also says that the program ended with an error.
var stoppedEarly = []rule.Rule{{
	Category: job.StoppedEarly, Signature: "own-early-stop", Confidence: 0.8, Traits: rule.Generic,
	Meaning: "the program stopped itself because a metric no longer improved, and ended with an exit code that says so",
	Hint:    "nothing is wrong with the program; the exit code tells its caller that this run promises nothing more",
	Needles: []string{"early", "earlystop", "improve", "decreas", "increas", "pruned", "pruning", "patience", "plateau", "flat ", "median", "hopeless", "halving", "rung", "target", "trial ", "promising", "not worth", "no gain", "no progress in", "no reduction", "worse", "rises", "rising", "deteriorat", "judge"},
	Match:   textmatch.New(`(?i)early[- ]?stop\w*\b.{0,80}\b(?:stop\w*|trigger\w*|ending|did not improve|no improvement|not improved)|\bno improvement\b.{0,60}\b(?:stop\w*|ending|epochs|rounds|checks|evaluations)|\b(?:did not|has not|hasn't|not) improved?\b.{0,80}\b(?:stop\w*|records|epochs|rounds|checks|evaluations|steps)|\bstopped early\b|\bpatience\b.{0,20}\b(?:exhausted|exceeded|ran out|reached|used up)|\bout of patience\b|without improvement\b.{0,40}\bstop\w*|\btrial \S+ (?:was )?stopped (?:at|by|early)\b|\btrial \S* ?(?:was )?pruned\b|` + fruitless + `.{0,100}` + cut + `|` + cut + `.{0,100}` + fruitless + `|\b(?:is|was|been) early-?stopped\b|\b(?:this|the) (?:trial|run) cannot reach (?:the |its )?target\b`),
	Unless:  textmatch.New(`(?i)\b(?:enabled|disabled|patience ?[:=]|callback|will (?:stop|end))\b|\bconfig\w*\W{1,3}[\w.]+ ?[:=]|\bpatience \d+$|\bwarn|learning rate`),
}, {
	Category: job.StoppedEarly, Signature: "own-early-stop", Confidence: 0.8,
	Hint:    "catch the exception where the trials are run: it only says that this trial promises nothing more",
	Classes: []string{"TrialPruned", "EarlyStoppingException", "EarlyStopException", "EarlyStop"},
}}

var straggler = []rule.Rule{{
	Category: job.Straggler, Signature: "reported-straggler", Confidence: 0.75, Traits: rule.Verdict,
	Meaning: "the program that supervises the job found one rank or host to be much slower than the others",
	Hint:    "look at the slow host: temperature and power of its GPUs, its clocks, other processes, its disks and network cards",
	Needles: []string{"slow", "straggl", "outlier", " lag", "the median", "of median", "the mean", "balance", "its peers", "the others", "others wait", "everybody", "everyone"},
	Match:   textmatch.New(`(?i)\b(?:slow\w*|straggl\w*|outliers?|lagging)\b.{0,120}(?:\d(?:\.\d+)? ?(?:x|×|times|%)|ratio ?[=:]? ?\d|\bmedian\b|\bthreshold\b|\bpeers\b|\blimit \d)|\b(?:im|load[- ]?)balance\b.{0,60}\b(?:over|above|exceeds?|beyond|limit)\b|\d(?:\.\d+)? ?(?:x|×|times|%) (?:slower|(?:of |above |over )?(?:the )?(?:median|mean|average)|(?:of )?(?:its )?peers)|\b(?:below|under)\b.{0,30}\b(?:floor|minimum|threshold|limit|target)\b.{0,80}\bslow|\b(?:(?:rank|worker|PE|node|host|task|process|member|replica|shard)[ =:#]*\S+|[rwmp]\d+) (?:\S+ ){0,4}?(?:lags?|lagging|holds?|delays?|takes|took|needs|is)\b.{0,60}\b(?:others|everybody|everyone|peers)\b`).And(textmatch.New(ends.String() + `|(?i)\bfail|\bstop(?:ping)?$`)),
	Find:    textmatch.New(`(?i)\b(?:rank|PE|worker)[ =:]*(?P<rank>\d+)|\b(?:node|host)[ =](?P<host>[a-z][\w.-]*\d[\w.-]*)`),
	Unless:  textmatch.New(`(?i)\b(?:no|0|zero|without) (?:straggl|outlier)|\b(?:enabled|disabled|configured|detection (?:on|off))\b|query|queries|convergence|\bwill\b|slow (?:start|log)|data ?loader|\b(?:token|image|sample)s?(?:[^/\w]|$)|gradient|learning rate`),
}, {
	Category: job.Straggler, Signature: "reported-straggler", Confidence: 0.8, Traits: rule.Verdict,
	Hint:    "look at the slow host: temperature and power of its GPUs, its clocks, other processes, its disks and network cards",
	Needles: []string{"straggler", "straggling", "slow rank", "slowest rank", "slow node", "slow worker", "slower than the", "slower than median", "slow gpu", "slowest rank:", "performance outlier", "% slower", "x slower", "times slower", "slowest", "below threshold because of", "evicting worker", "evicting rank", "lagging", "slow host", "is slow: ", "is slow, ", "slowed down the", "stragglers", "is the slow", "others wait", "exceeds the group", "exceeds the mean", "exceeds the median", "degraded performance", "fail-slow", "failslow", "gray failure", "gray node"},
	Match: textmatch.New(`(?i)slowest rank[ :=]+(?P<rank>\d+)\b.{0,40}\b(?:fail\w*|abort\w*|exceed\w*|over|above)\b|slowest rank: (?P<rank>\d+) \(.*(?:throttl|MHz| C\b)|(?:straggl\w*|slow (?:rank|node|worker|gpu|host)s?)\b.{0,80}?\b(?:detected|found|identified|abort\w*|terminat\w*|exceed\w*|evict\w*|exclu\w*|stop\w*|kill\w*|fail\w*|rank[ =:]*(?P<rank>\d+))|(?:detected|found|identified|affected|due to|aborting|terminating|(?:ended|stopped|killed|evicted|removed|cancelled|terminated|aborted) (?:by|because of))\b.{0,60}\b(?:straggl\w*|slow (?:rank|node|worker|gpu|host))|` +
		`\brank[ =:]*(?P<rank>\d+)\b.{0,80}\b(?:is (?:a |the )?(?:straggler|slow)|\d ?(?:x|%|times) slower|all (?:the )?others wait)|performance outlier|(?:host|node|worker|gpu)\b.{0,60}\b\d+ ?(?:x|%|times) ?slower\b|step[- ]time .{0,20}\brank (?P<rank>\d+) exceeds|below threshold because of rank (?P<rank>\d+)|fail-?slow (?:detected|node|host|rank)|StragglerId\(rank=(?P<rank>\d+)`),
	Find:   textmatch.New(`(?i)\brank[ =:]*(?P<rank>\d+)`),
	Unless: textmatch.New(`(?i)\b(?:no|0|zero|without) (?:straggl|slow)|straggler detect\w+ (?:is )?(?:enabled|disabled|initiali[sz]ed|on|off|set ?up|configured|started|interval|threshold)|\benabl\w+ straggler|mitigation (?:on|enabled)`),
}, {
	Category: job.Straggler, Signature: "reported-straggler", Confidence: 0.7, Traits: rule.Weak,
	Hint:    "look at the slow host: temperature and power of its GPUs, its clocks, other processes, its disks and network cards",
	Needles: []string{"the median", "the mean", "the average", "slow_rank", "slowest_rank"},
	Match:   textmatch.New(`(?i)\brank[ =:]*(?P<rank>\d+)\b.{0,60}\b(?:takes|took|needs|is|runs at|at) \d+(?:\.\d+)? ?(?:x|×|times) the (?:median|mean|average)|"?event"?[:=] ?"?slow(?:est)?_rank"?.{0,40}\brank\W{1,3}(?P<rank>\d+)`),
	Unless:  textmatch.New(`(?i)data ?loader|\bwarn`),
}}
