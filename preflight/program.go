package preflight

import (
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/mistyped"
)

const missingText = "the program {path} does not exist or is not on PATH"

var programCheck = Check{
	Code:      "program",
	Asks:      "Does every host find the program, and can it execute it?",
	DependsOn: []string{"workdir"},
	Problems: []Problem{
		unmounted("program", "the program"),
		{"program-missing", job.SeverityError, job.LaunchError,
			missingText,
			"give its path, as in ./NAME for one in the working directory, name a script's interpreter first, as in python3 train.py, or set PATH for the job with -e PATH=DIRS; every host uses the PATH of the shell in which gangrun was started, which may lack directories of that host"},
		{"program-here", job.SeverityError, job.LaunchError,
			missingText, "write {instead}"},
		{"program-assignment", job.SeverityError, job.LaunchError,
			missingText, "write {instead} before the command"},
		{"program-quoted", job.SeverityError, job.LaunchError,
			missingText, "remove the quotes: {instead}"},
		{"program-shell", job.SeverityError, job.LaunchError,
			missingText, "write {instead}"},
		{"program-permission", job.SeverityError, job.PermissionError,
			"the program {path} may not be executed: {error}",
			"run chmod +x on it, or name a script's interpreter first, as in python3 train.py; if it is executable, look at the directories above it and at a noexec mount"},
		{"program-kind", job.SeverityError, job.LaunchError,
			"the program {path} is not a file that can be executed",
			"name the program itself as the first word of the command"},
		{"program-interpreter", job.SeverityError, job.LaunchError,
			"the program {path} needs the interpreter {interpreter}, which does not exist",
			"install the interpreter on that host, or correct the #! line; a program built on another system may need a dynamic loader which this one does not have"},
		{"program-line-ends", job.SeverityError, job.LaunchError,
			"the program {path} needs the interpreter {interpreter}, which does not exist",
			"the lines of the script end with CR and LF, as on Windows; run: sed -i 's/\\r$//' {path}"},
		{"program-format", job.SeverityError, job.LaunchError,
			"the program {path} cannot be executed: {format}",
			"build it for that host's machine; if it is a script, begin it with a #! line or name its interpreter first"},
		{"program-io", job.SeverityError, job.StorageError,
			"the program {path} cannot be read: {error}",
			elsewhereHint},
	},
	Judge: each(func(s job.Spec, f job.Facts) []Hit {
		p := f.Program
		if p.Path == "" {
			p.Path = s.Command[0]
		}
		hit := func(signature string, pairs ...string) []Hit {
			return []Hit{{Signature: signature, Path: p.Path, Values: about(p.Path, pairs...)}}
		}
		if p.Kind == job.ErrorMissing {
			if slip, ok := mistyped.Find(s.Command, p.Here != "", p.Executable); ok {
				return hit(slip.Signature, "instead", slip.Instead)
			}
		}
		if hits := pathHits("program", p.PathFact, job.ErrorMissing, job.ErrorPermission, job.ErrorKindOf); hits != nil {
			return hits
		}
		switch {
		case p.Dir:
			return hit("program-kind", "error", "")
		case !p.Executable:
			return hit("program-permission", "error", "it is not executable")
		case p.Interpreter != "":
			if strings.HasSuffix(p.Interpreter, "\r") {
				return hit("program-line-ends", "interpreter", quote(p.Interpreter))
			}
			return hit("program-interpreter", "interpreter", quote(p.Interpreter))
		case p.Format != "":
			return hit("program-format", "format", p.Format)
		}
		return nil
	}),
}

var librariesCheck = Check{
	Code:      "program-libraries",
	Asks:      "Does every host have the shared libraries that the program needs?",
	DependsOn: []string{"program"},
	Problems: []Problem{
		{"program-libraries-missing", job.SeverityError, job.MissingLibrary,
			"the program {path} needs {libraries}, which the dynamic loader does not find",
			"install what is missing on that host, or name its directory with -e LD_LIBRARY_PATH=DIR"},
		{"program-libraries-old", job.SeverityError, job.MissingLibrary,
			"the program {path} needs {versions}: the libraries there are older than those for which it was built",
			"build the program there or, if it runs in an image, in that image; or use newer libraries"},
	},
	Judge: each(func(_ job.Spec, f job.Facts) []Hit {
		if len(f.Program.Missing) == 0 && len(f.Program.Old) == 0 {
			return nil
		}
		if len(f.Program.Missing) == 0 {
			return []Hit{{Signature: "program-libraries-old", Path: f.Program.Path, Values: about(f.Program.Path, "versions", names(f.Program.Old))}}
		}
		return []Hit{{Signature: "program-libraries-missing", Path: f.Program.Path,
			Values: about(f.Program.Path, "libraries", names(f.Program.Missing))}}
	}),
}

const sameHint = "bring the same file to every host, or keep it on a shared file system; if they differ on purpose, use --preflight off"

var programSameCheck = Check{
	Code:      "program-same",
	Asks:      "Is the program the same file on every host?",
	DependsOn: []string{"program"},
	Problems: []Problem{
		{"program-differs", job.SeverityError, job.LaunchError,
			"the program {path} is not the same file on {hosts}{rest}", sameHint},
		{"interpreter-differs", job.SeverityWarning, "",
			"the interpreter {path} is not the same file on {hosts}{rest}",
			"use the same version everywhere if the ranks exchange pickled objects or compiled modules"},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		signature := "program-differs"
		if facts[0].Script != nil || interpreter(facts[0].Program.Path) {
			signature = "interpreter-differs"
		}
		return different(signature, facts, func(f job.Facts) (path, hash string) {
			return f.Program.Path, f.Program.SHA256
		})
	},
}

// interpreter reports whether a program is known to run scripts. If such a program differs between hosts, then
// its version differs, but not the job's own code.
func interpreter(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	for _, name := range []string{"python", "pypy", "perl", "ruby", "julia", "Rscript", "node"} {
		if strings.HasPrefix(base, name) {
			return true
		}
	}
	switch base {
	case "sh", "bash", "dash", "zsh", "ksh", "fish", "env", "nice", "numactl", "taskset", "timeout", "stdbuf":
		return true
	}
	return false
}
