package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const installHint = "install ${artefact|the module} where the job runs, or activate its environment: every host needs it"

var importError = []rule.Rule{{
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
	Needles: []string{"not found in current path", "there is no package called", "does not seem to be installed", "@inc", "cannot find module '", "cannot load such file -- ", "could not find or load main class", "classnotfoundexception", "noclassdeffounderror", "module '"},
	Match: textmatch.New(`Package (?P<artefact>\w+) not found in current path|no package called .(?P<artefact>[\w.]+)|Package (?P<artefact>\w+) \[[0-9a-f-]+\] is required but does not seem to be installed|Can't locate (?P<artefact>\S+\.pm) in @INC|^(?:Error: )?Cannot find module '(?P<artefact>[^']+)'|cannot load such file -- (?P<artefact>\S+)|Could not find or load main class (?P<artefact>\S+)|` +
		`Exception in thread ".*(?:ClassNotFoundException|NoClassDefFoundError): *(?P<artefact>[\w./$]+)|module '(?P<artefact>[\w.]+)' not found:$`),
}, {
	Category: job.ImportError, Signature: "import-map", Confidence: 0.95,
	Meaning: "a shared library of a module cannot be mapped into memory: too little memory is allowed, or its file system is mounted noexec",
	Hint:    "raise the limit on memory (ulimit -v, the memory of the batch job or container), or install the module on a file system that is not mounted noexec",
	Needles: []string{"failed to map segment from shared object"},
}, {
	Category: job.ImportError, Signature: "import-name", Confidence: 0.95,
	Meaning: "a module is installed but lacks the name that is imported; usually it is of another version",
	Hint:    "install the version of ${artefact|the module} that the program was written for; two modules that import each other show this too",
	Classes: []string{"ImportError"},
	Unless:  textmatch.New(`failed to map segment`),
	Find:    textmatch.New(`cannot import name '\w+' from (?:partially initialized module )?'(?P<artefact>[^']+)'`),
}, {
	Category: job.ImportError, Signature: "dependency-version", Confidence: 0.95,
	Meaning: "an installed package refuses the version of another one",
	Hint:    "install the versions that the message asks for",
	Classes: []string{"*", rule.Message},
	Needles: []string{"is required for a normal functioning of this module", "distributionnotfound", "packagenotfounderror", "versionconflict", "numpy.dtype size changed", "a module that was compiled using numpy 1.x",
		"numpy is not available", "operator torchvision::nms does not exist", "module compiled against api version", "failed to import transformers", "failed to import diffusers", "because of the following error (look up to see", "module compiled against abi version", "is incompatible with this version of", "flash_attn_2_cuda", "requires jaxlib version", "jaxlib is version", "package or namespace load failed", "unsupportedclassversionerror"},
	Find: textmatch.New(`(?P<artefact>[\w-]+[<>=!]=?[\w.]+) is required`),
}}
