package preflight

import "github.com/gangrun/gangrun/internal/job"

var inputsCheck = Check{
	Code:      "inputs",
	Asks:      "Can every host read everything that `inputs:` names?",
	DependsOn: []string{"workdir"},
	Problems: []Problem{
		unmounted("input", "the input"),
		{"input-missing", job.SeverityError, job.IncorrectInputs,
			"input {path} does not exist",
			"correct its path, or bring it to every host; a relative one is looked for in --workdir"},
		{"input-permission", job.SeverityError, job.PermissionError,
			"input {path} cannot be read: {error}",
			"get permission to read it and to enter the directories above it"},
		{"input-kind", job.SeverityError, job.IncorrectInputs,
			"input {path} is neither a file nor a directory: {error}",
			"name a file or a directory"},
		{"input-io", job.SeverityError, job.StorageError,
			"input {path} cannot be read: {error}",
			elsewhereHint},
		{"input-empty", job.SeverityWarning, "",
			"input {path} is empty",
			"check that its file system is mounted and that the data was copied completely"},
	},
	Judge: each(func(_ job.Spec, f job.Facts) []Hit {
		var hits []Hit
		for _, in := range f.Inputs {
			hits = append(hits, pathHits("input", in, job.ErrorMissing, job.ErrorPermission, job.ErrorKindOf)...)
			if in.Kind == job.ErrorNone && in.Error == "" && in.Empty {
				hits = append(hits, Hit{Signature: "input-empty", Path: in.Path, Values: about(in.Path)})
			}
		}
		return hits
	}),
}
