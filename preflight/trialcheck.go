package preflight

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/mistyped"
)

const (
	trialHint = "say in the job file how it can be tried, as in `trial: {ranks: N}` or `trial: {args: [...]}`, or omit the trial with --trial off"
	// leaveOut is the end of the hint about a trial that failed. The hint of the cause comes before it.
	leaveOut = "{hint}--trial off omits the trial"
)

var trialCheck = Check{
	Code: CodeTrial,
	Asks: "Does the job's own command work on one rank?",
	Problems: append(trialProblems(CodeTrial), Problem{"trial-uncontained", job.SeverityWarning, "",
		"the trial was left out, since what it writes could not be thrown away: {reason}",
		"--trial uncontained tries the job nevertheless, on its own files; --trial off omits the trial and this warning"}),
}

var trialRanksCheck = Check{
	Code:     CodeTrialRanks,
	Asks:     "If the trial uses more ranks: does the command work on them?",
	Problems: trialProblems(CodeTrialRanks),
}

// trialProblems returns the Problems of a round of the trial. If the cause of a failure was diagnosed, the
// finding has this cause instead of a Cause that is made from the Problem.
func trialProblems(code string) []Problem {
	return []Problem{
		{code + "-failed", job.SeverityError, "",
			"the trial failed on {ranks} after {elapsed}: {cause}", leaveOut},
		{code + "-few-ranks", job.SeverityWarning, "",
			"the trial failed on {ranks} after {elapsed}; the gang of {gang} may still work: {cause}",
			"{hint}say how the job can be tried, as in `trial: {ranks: 4}` or `trial: {args: [...]}`; " + "--trial off omits the trial"},
		{code + "-world-size", job.SeverityWarning, "",
			"the program does not run on {ranks}, so that it could not be tried: {line}", trialHint},
		{code + "-memory", job.SeverityWarning, "",
			"the job does not fit on {ranks}, so that it could not be tried: {cause}", trialHint},
		{code + "-full", job.SeverityWarning, "",
			"the trial on {ranks} wrote more than the memory for the files of trials can hold, so it does not show whether the job works: {cause}",
			"let it write less, as with `trial: {args: [...]}`; --trial uncontained lets it write to the job's own file systems; --trial off omits the trial"},
		{code + "-contained", job.SeverityWarning, "",
			"the trial failed on {ranks} after {elapsed}, perhaps because it was contained: {cause}",
			"{hint}--trial uncontained tries the job on its own files; --trial off omits the trial"},
		{code + "-inconclusive", job.SeverityWarning, "",
			"the trial was ended by an error that may be temporary: {cause}", leaveOut},
		{code + "-stdin", job.SeverityWarning, "",
			"the trial on {ranks} was ended after {elapsed}: the program waits for standard input, which is kept for the gang",
			"give the input as a file, or in a pipe that has data within a second: the trial reads it, and the gang reads it again; --trial off omits the trial"},
		{code + "-late", job.SeverityWarning, "",
			"the trial's {ranks} did not start within {limit}, so that the job was not tried",
			"look at the hosts and at the network between them if the gang does not start either; --trial off omits the trial"},
		{code + "-unreaped", job.SeverityWarning, "",
			"the trial is over, but its {ranks} may still be running",
			"look for the process of this rank on the host, and end it; --trial off omits the trial"},
	}
}

// uncontained returns the finding that says why there was no trial.
func (t *trial) uncontained(e *job.UncontainedError) job.Finding {
	f := trialCheck.finding(Hit{Signature: "trial-uncontained", Hosts: []string{e.Host}, Values: map[string]string{"reason": e.Error()}}, 0)
	if cause := t.p.Diagnose(job.Evidence{Lines: []job.Line{{Source: job.SourceAgent, Host: e.Host, Rank: -1, Text: e.Reason}}}); ofStorage(cause.Category) {
		f.Cause = &cause
	}
	return f
}

// ofStorage reports whether a category may mean that a file system refused an operation.
func ofStorage(c job.Category) bool {
	return c == job.DiskFull || c == job.StorageError || c == job.OutputError
}

var trialFilesCheck = Check{
	Code: CodeTrialFiles,
	Asks: "Did a trial that was not contained leave the job's files unchanged?",
	Problems: []Problem{
		{"trial-files-made", job.SeverityError, job.OutputError,
			"the trial left files behind that the gang might read: {files}",
			"remove them: {remove}; then start the job with --trial on or off"},
		{"trial-files-changed", job.SeverityError, job.OutputError,
			"the trial changed or removed files of the job: {files}",
			"restore these files, then start the job with --trial on or off"},
		{"trial-files-many", job.SeverityWarning, "",
			"there are too many files in {dirs} to see whether the trial changed any",
			"use --trial on if the host can contain a trial, or check these files before you rely on the job's results"},
	},
}

// files returns findings about the job's files that a trial has changed.
func (t *trial) files() []job.Finding {
	var findings []job.Finding
	add := func(c job.Changed, signature string, paths []string, more int64, values map[string]string) {
		all := names(quoted(paths))
		if more > 0 {
			all += fmt.Sprintf(" and %d more", more)
		}
		values["files"] = all
		findings = append(findings, trialFilesCheck.finding(Hit{Signature: signature, Hosts: []string{c.Host}, Values: values}, 0))
	}
	for _, c := range t.changed {
		if len(c.Changed) > 0 {
			add(c, "trial-files-changed", c.Changed, 0, map[string]string{})
		}
		if len(c.Made) > 0 {
			add(c, "trial-files-made", c.Made, c.More, map[string]string{"remove": "rm -r -- " + strings.Join(shellQuoted(c.Made), " ")})
		}
		if c.Partly {
			add(c, "trial-files-many", nil, 0, map[string]string{"dirs": quote(t.spec.Workdir)})
		}
	}
	return findings
}

func quoted(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = quote(p)
	}
	return out
}

// shellQuoted quotes paths so that the user can paste them into a shell.
func shellQuoted(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = mistyped.Quote(p)
	}
	return out
}
