package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const limitHint = "ask for more time, or resume from the last checkpoint in a new job"

var timeLimit = []Rule{{
	Category: job.TimeLimit, Signature: "cpu-time-limit", Confidence: 0.95,
	Meaning: "the process used up the CPU time that it is allowed",
	Hint:    "raise the limit (ulimit -t)",
	Text:    "ended by ${signal}: it used up the CPU time that it is allowed", Ends: Ends{Signals: []int{24}},
}, {
	Category: job.TimeLimit, Signature: "cpu-time-limit", Confidence: 0.9,
	Hint:    "raise the limit (ulimit -t)",
	Needles: []string{"cpu time limit exceeded", "sigxcpu", "cputime limit exceeded", "term_cpulimit"},
	Match:   textmatch.New(`(?i)cpu ?time limit exceeded|\bSIGXCPU\b|TERM_CPULIMIT`),
}, {
	Category: job.TimeLimit, Signature: "batch-time-limit", Confidence: 0.95, Traits: Verdict,
	Meaning: "the batch system's time limit ended the job",
	Hint:    limitHint,
	Needles: []string{"due to time limit", "application timed out", "user-provided time limit", "walltime", "term_runlimit", "deadlineexceeded", "deadline exceeded", "run time limit", "runtime limit", "wall clock limit", "maxruntime",
		"exceeded maximum run", "time limit reached", "time limit exceeded", "wallclock", "h_rt", "attempt duration exceeded", "stopping condition", "maximum runtime", "time limit expired", "exec.timelimit", "active longer than specified deadline", "time budget", "time is up", "duration limit"},
	Match: textmatch.New(`DUE TO TIME LIMIT|(?i)time limit of \S+ ?\w* (?:was )?(?:exceeded|reached)|time budget.{0,20}(?:exceeded|exhausted|used up)|APPLICATION TIMED OUT|user-provided time limit|TERM_RUNLIMIT|\bTIMEOUT\b.*(?i:walltime)|(?i)walltime \S+ exceeded|walltime exceeded|walltime limit|exceed\w* (?:\w+ )*(?:walltime|wallclock|wall clock|run ?time|time limit)|` +
		`wall ?clock (?:time )?(?:limit )?(?:exceeded|reached|expired)|DeadlineExceeded\b|active longer than specified deadline|(?:job|task|step|run|pod|container|application) .{0,60}(?:time limit|run ?time limit|max\w* run ?time|deadline)\b.{0,20}(?:reached|exceeded|expired)|` +
		`MaxRuntimeExceeded|attempt duration exceeded|hard (?:wallclock|runtime) limit|initiate terminate method due to .*(?:h_rt|wallclock)|exceeded hard wallclock|time limit (?:reached|exceeded|expired)`),
	Unless: textmatch.New(`DEADLINE_EXCEEDED|CUDA|^WARN|(?i)context deadline exceeded|retry|barrier|ETA|remaining|rpc error|optimi[sz]er|solver|gurobi|cplex|mip|highs`),
}, {
	Category: job.TimeLimit, Signature: "timeout-command", Confidence: 0.85, Traits: Verdict,
	Meaning: "the command timeout ended the program",
	Hint:    "give timeout a longer time, or look for the reason why the program took so long",
	Needles: []string{"timeout: sending signal "},
	Match:   textmatch.New(`timeout: sending signal \w+ to command`),
}}
