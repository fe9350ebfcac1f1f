package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const installHint = "install ${artefact|the module} where the job runs, or activate its environment: every host needs it"

var importError = []Rule{{
	Category: job.ImportError, Signature: "module-missing", Confidence: 0.98,
	Meaning: "a module that the program imports is not installed",
	Hint:    installHint,
	Classes: []string{"ModuleNotFoundError"},
	Find:    textmatch.New(`No module named '(?P<artefact>[^']+)'`),
}, {
	Category: job.ImportError, Signature: "module-missing", Confidence: 0.95,
	Hint:    installHint,
	Needles: []string{": no module named "},
	Match:   textmatch.New(`: No module named '?(?P<artefact>[\w.]+)`),
}, {
	Category: job.ImportError, Signature: "module-missing", Confidence: 0.9,
	Hint:    installHint,
	Needles: []string{"not found in current path", "package {0}", "there is no package called"},
	Match:   textmatch.New(`Package (?P<artefact>\w+) not found in current path|no package called .(?P<artefact>[\w.]+)`),
}, {
	Category: job.ImportError, Signature: "import-name", Confidence: 0.95,
	Meaning: "a module is installed but lacks the name that is imported; usually it is of another version",
	Hint:    "install the version of ${artefact|the module} that the program was written for; two modules that import each other show this too",
	Classes: []string{"ImportError"},
	Find:    textmatch.New(`cannot import name '\w+' from (?:partially initialized module )?'(?P<artefact>[^']+)'`),
}, {
	Category: job.ImportError, Signature: "dependency-version", Confidence: 0.95,
	Meaning: "an installed package refuses the version of another one",
	Hint:    "install the versions that the message asks for",
	Classes: []string{"*"},
	Needles: []string{"is required for a normal functioning of this module", "distributionnotfound", "packagenotfounderror", "versionconflict", "numpy.dtype size changed", "a module that was compiled using numpy 1.x"},
	Find:    textmatch.New(`(?P<artefact>[\w-]+[<>=!]=?[\w.]+) is required`),
}}
