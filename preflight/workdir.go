package preflight

import "github.com/gangrun/gangrun/internal/job"

const elsewhereHint = "look at that host's file system (mount, network, disk), or leave the host out"

var workdirCheck = Check{
	Code:      "workdir",
	Asks:      "Can every host enter the working directory?",
	DependsOn: []string{"image"},
	Problems: []Problem{
		unmounted("workdir", "the working directory"),
		{"workdir-missing", job.SeverityError, job.IncorrectInputs,
			"the working directory {path} does not exist",
			"make it on every host, or name another one with --workdir"},
		{"workdir-permission", job.SeverityError, job.PermissionError,
			"the working directory {path} cannot be entered: {error}",
			"get read and execute permission on it and on its parents, or name another one with --workdir"},
		{"workdir-kind", job.SeverityError, job.IncorrectInputs,
			"the working directory {path} is not a directory",
			"name a directory with --workdir"},
		{"workdir-io", job.SeverityError, job.StorageError,
			"the working directory {path} cannot be entered: {error}",
			elsewhereHint},
	},
	Judge: each(func(_ job.Spec, f job.Facts) []Hit {
		hits := pathHits("workdir", f.Workdir, job.ErrorMissing, job.ErrorPermission, job.ErrorKindOf)
		if hits == nil && !f.Workdir.Dir {
			hits = []Hit{{Signature: "workdir-kind", Path: f.Workdir.Path, Values: about(f.Workdir.Path, "error", "")}}
		}
		return hits
	}),
}
