package preflight

import (
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
)

var scriptCheck = Check{
	Code:      "script",
	Asks:      "Can every host read the Python script?",
	DependsOn: []string{"workdir"},
	Problems: []Problem{
		unmounted("script", "the script"),
		{"script-missing", job.SeverityError, job.IncorrectInputs,
			"the script {path} does not exist",
			"correct its path, or bring it to every host; a relative one is looked for in --workdir"},
		{"script-permission", job.SeverityError, job.PermissionError,
			"the script {path} cannot be read: {error}",
			"get permission to read it and to enter the directories above it"},
		{"script-kind", job.SeverityError, job.IncorrectInputs,
			"the script {path} is not a file that Python can run: {error}",
			"name the script itself"},
		{"script-io", job.SeverityError, job.StorageError,
			"the script {path} cannot be read: {error}",
			elsewhereHint},
	},
	Judge: each(func(_ job.Spec, f job.Facts) []Hit {
		if f.Script == nil {
			return nil
		}
		return pathHits("script", f.Script.PathFact, job.ErrorMissing, job.ErrorPermission, job.ErrorKindOf)
	}),
}

var syntaxCheck = Check{
	Code:      "python-syntax",
	Asks:      "Does the Python script compile, with the job's own interpreter?",
	DependsOn: []string{"program", "script"},
	Problems: []Problem{
		{"python-syntax-error", job.SeverityError, job.SyntaxError,
			"{path}{line}: {message}{source}",
			"correct that line; if it is right, the job's interpreter is older than the language it is written in"},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		var hits []Hit
		for _, f := range facts {
			if f.Script == nil || f.Script.Syntax == "" {
				continue
			}
			line, source := "", ""
			if f.Script.Line > 0 {
				line = ", line " + strconv.Itoa(f.Script.Line)
			}
			if f.Script.Source != "" {
				source = ": " + f.Script.Source
			}
			hits = append(hits, Hit{
				Signature: "python-syntax-error",
				Hosts:     alike(f, facts),
				Path:      f.Script.Path,
				Values: about(f.Script.Path, "line", line,
					"message", f.Script.Syntax, "source", source),
				Evidence: []job.Line{{Source: job.SourceAgent, Host: f.Host, Rank: -1,
					File: f.Script.Path, Line: f.Script.Line, Text: f.Script.Source}},
			})
		}
		return hits
	},
}

// alike returns the hosts that have the same script as the host that compiled it. Only one host needs to
// compile it.
func alike(compiled job.Facts, facts []job.Facts) []string {
	var hosts []string
	for _, f := range facts {
		same := f.Script != nil && !f.Script.Compiled && f.Script.SHA256 != "" && f.Script.SHA256 == compiled.Script.SHA256
		if same || f.Host == compiled.Host {
			hosts = append(hosts, f.Host)
		}
	}
	return hosts
}

var scriptSameCheck = Check{
	Code:      "script-same",
	Asks:      "Is the Python script the same file on every host?",
	DependsOn: []string{"script"},
	Problems: []Problem{
		{"script-differs", job.SeverityError, job.LaunchError,
			"the script {path} is not the same file on {hosts}{rest}", sameHint},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		return different("script-differs", facts, func(f job.Facts) (path, hash string) {
			if f.Script == nil {
				return "", ""
			}
			return f.Script.Path, f.Script.SHA256
		})
	},
}
