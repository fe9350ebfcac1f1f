package preflight

import "github.com/gangrun/gangrun/internal/job"

const trialHint = "say in the job file how it can be tried, as in `trial: {ranks: 2}` or `trial: {args: [...]}`, or leave the trial out with `trial: off`"

var trialCheck = Check{
	Code:     CodeTrial,
	Asks:     "Does the job's own command work on one rank?",
	Problems: trialProblems(CodeTrial),
}

var trialRanksCheck = Check{
	Code:      CodeTrialRanks,
	Asks:      "Does it work on as many ranks as `trial: {ranks: N}` asks for?",
	DependsOn: []string{CodeTrial},
	Problems:  trialProblems(CodeTrialRanks),
}

// trialProblems returns what a step of the trial can have to say. A Cause that
// was diagnosed takes the place of one made from the Problem.
func trialProblems(code string) []Problem {
	return []Problem{
		{code + "-failed", job.SeverityError, "",
			"the trial failed on {ranks} after {elapsed}: {cause}", "{hint}"},
		{code + "-world-size", job.SeverityWarning, "",
			"the program does not run on {ranks}, so that it could not be tried: {line}", trialHint},
		{code + "-memory", job.SeverityWarning, "",
			"the job does not fit on {ranks}, so that it could not be tried: {cause}", trialHint},
		{code + "-inconclusive", job.SeverityWarning, "",
			"the trial was ended twice by what may pass: {cause}", "{hint}"},
		{code + "-late", job.SeverityWarning, "",
			"the trial's {ranks} did not start within {limit}, so that the job was not tried",
			"look at the hosts and at the network between them if the gang does not start either"},
		{code + "-unreaped", job.SeverityWarning, "",
			"the trial is over, but {ranks} may still be running",
			"look for it on that host, and end it there"},
	}
}

var trialDirCheck = Check{
	Code: CodeTrialDir,
	Asks: "Did the trial leave the job's own checkpoint directory alone?",
	Problems: []Problem{
		{"checkpoint-dir-touched", job.SeverityWarning, "",
			"the checkpoint directory {path} changed while the trial ran: {files}",
			"let the job read where to write from GANGRUN_CHECKPOINT_DIR or from {{.CheckpointDir}} in its command: the trial is given a directory of its own"},
	},
}
