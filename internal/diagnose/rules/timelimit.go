package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const limitHint = "ask for more time, or resume from the last checkpoint in a new job"

var timeLimit = []rule.Rule{{
	Category: job.TimeLimit, Signature: "cpu-time-limit", Confidence: 0.95,
	Meaning: "the process used up the CPU time that it is allowed",
	Hint:    "raise the limit (ulimit -t)",
	Text:    "ended by ${signal}: it used up the CPU time that it is allowed", Ends: rule.Ends{Signals: []int{24}},
}, {
	Category: job.TimeLimit, Signature: "cpu-time-limit", Confidence: 0.9,
	Hint:    "raise the limit (ulimit -t)",
	Needles: []string{"cpu time limit exceeded", "sigxcpu", "cputime limit exceeded", "term_cpulimit"},
	Match:   textmatch.New(`(?i)cpu ?time limit exceeded|\bSIGXCPU\b|TERM_CPULIMIT`),
}, {
	Category: job.TimeLimit, Signature: "batch-time-limit", Confidence: 0.95, Traits: rule.Verdict,
	Meaning: "the batch system's time limit ended the job",
	Hint:    limitHint,
	Needles: []string{"due to time limit", "application timed out", "user-provided time limit", "walltime", "term_runlimit", "deadlineexceeded", "deadline exceeded", "run time limit", "runtime limit", "wall clock limit", "maxruntime",
		"exceeded maximum run", "time limit reached", "time limit exceeded", "wallclock", "h_rt", "attempt duration exceeded", "stopping condition", "maximum runtime", "time limit expired", "exec.timelimit", "active longer than specified deadline", "time budget", "time is up", "duration limit", "wall-clock limit", "wall time limit", "wall-time limit", "wall clock time", "runtime time limit", "type=timeout", "execute duration", "took longer than", "ran longer than", "running for more than", "maximum execution time", "maximum allowed time", "max execution time", "maximum time of", "maximum duration", "max duration", "executiontimelimit", "timelimitexceeded", "exceeded timeout of", "job timeout", "timeout exceeded", "time allotment", "allotted time", "allocation expired", "exceeded its time", "time allocation", "time quota", "maxwaittimeexceeded", "exceeded the time", "time-limit", "timed out after", "max run duration", "maximum run time", "max run time", "activedeadlineseconds", "execution time exceeded", "wall time used", "scheduling.timeout"},
	Match: textmatch.New(`DUE TO TIME LIMIT|(?i)time limit of \S+ ?\w* (?:was )?(?:exceeded|reached)|time budget.{0,20}(?:exceeded|exhausted|used up)|APPLICATION TIMED OUT|user-provided time limit|TERM_RUNLIMIT|\bTIMEOUT\b.*(?i:walltime)|(?i)walltime \S+ exceeded|walltime exceeded|walltime limit|exceed\w* (?:\w+ )*(?:walltime|wallclock|wall clock|run ?time|time limit)|` +
		`wall ?clock (?:time )?(?:limit )?(?:exceeded|reached|expired)|DeadlineExceeded\b|active longer than specified deadline|(?:job|task|step|run|pod|container|application) .{0,60}(?:time limit|run ?time limit|max\w* run ?time|deadline)\b.{0,20}(?:reached|exceeded|expired)|` +
		`MaxRuntimeExceeded|attempt duration exceeded|hard (?:wallclock|runtime) limit|initiate terminate method due to .*(?:h_rt|wallclock)|exceeded hard wallclock|wall[- ]?(?:clock)?[- ]?(?:time )?limit of .{1,20}(?:exceeded|reached)|reached runtime time limit|job\.exception type=timeout|allowed execute duration|(?:job|run|task|step|workflow|pipeline)\b.{0,60}\b(?:took|ran|running|has run) (?:for )?(?:longer|more) than (?:the )?(?:max\w* |allowed |\d)|(?:exceeded|reached) (?:the |its |their )?(?:job |run )?(?:max(?:imum)?|allowed|allotted) (?:allowed |wall )?(?:execution |run |running )?(?:time|duration)|maximum (?:execution|allowed) time.{0,30}exceeded|ExecutionTimeLimitExceeded|exceeded (?:the )?max run duration|maximum wall ?time used up|exceeded scheduling\.timeout|job exceeded timeout of|activeDeadlineSeconds\b.*(?:exceed|terminat|reach)|(?:terminat|exceed)\w*.*activeDeadlineSeconds|(?:execution|run|running|wall) time exceeded the (?:max|limit)|(?:resource )?allocation expired|MaxWaitTimeExceeded|exceeded its (?:allotted )?time|job timed out after \d|time (?:allotment|quota|allocation) (?:exceeded|expired|exhausted|used up)|time limit (?:reached|exceeded|expired)`),
	Unless: textmatch.New(`DEADLINE_EXCEEDED|CUDA|^WARN|(?i)context deadline exceeded|retry|barrier|ETA|remaining|rpc error|optimi[sz]er|solver|gurobi|cplex|mip|highs|\bwill be\b|\bwhen (?:its|the)\b|\bif (?:its|the)\b|handling|limit ?[:=] ?\d|[Ss]olution|\b(?:checking|until|before) the\b`),
}, {
	Category: job.TimeLimit, Signature: "timeout-command", Confidence: 0.85, Traits: rule.Verdict,
	Meaning: "the shell command timeout ended the program",
	Hint:    "give timeout a longer time, or look for the reason why the program took so long",
	Needles: []string{"timeout: sending signal ", "(exit 124", "(rc 124", "(code 124", "(status 124"},
	Match:   textmatch.New(`timeout: sending signal \w+ to command|\((?:exit |rc |code |status )+124\b`),
}, {
	Category: job.TimeLimit, Signature: "batch-time-limit", Confidence: 0.9,
	Hint:    limitHint,
	Classes: []string{"*", rule.Message},
	Needles: []string{"time limit", "wall-clock", "wall clock", "wallclock", "walltime", "wall time", "took longer than", "ran longer than", "time budget", "maximum execution time", "maximum allowed time", "exceeded the maximum", "out of time", "run time", "runtime"},
	Match:   textmatch.New(`(?i)\b(?:run|wall|elapsed) ?time \S+ (?:is |was )?(?:over|above|beyond|past|exceeds) (?:the |its )?limit\b|(?:wall[- ]?(?:clock )?(?:time )?|run ?time |time |execution time |job )(?:limit|budget|quota)\b.{0,40}\b(?:exceeded|reached|expired|exhausted|used up|hit)|(?:exceed\w*|reach\w*|hit|over|past) (?:\w+ ){0,3}(?:wall[- ]?(?:clock|time)|wall[- ]clock|run ?time|execution time|time) (?:limit|budget)|exceeded the maximum (?:allowed |run |execution |wall )+time|maximum (?:execution|allowed|run) time .{0,30}(?:exceeded|reached)|took longer than .{0,20}\d|ran longer than`),
	Unless:  textmatch.New(`(?i)DEADLINE_EXCEEDED|CUDA|solver|gurobi|cplex|mip\b|highs|optimi[sz]er|per[- ]request|http|query|barrier|connect`),
}}
