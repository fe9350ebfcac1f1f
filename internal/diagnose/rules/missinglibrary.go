package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const libraryHint = "install ${artefact|the library} on every host or add its directory to LD_LIBRARY_PATH; ldd shows what is missing"

var missingLibrary = []rule.Rule{{
	Category: job.MissingLibrary, Signature: "linker", Confidence: 0.9,
	Meaning: "the linker does not find a library",
	Hint:    libraryHint,
	Needles: []string{"distributed package doesn't have ", "cannot find -l", "could not load dynamic library", "cannot load libcuda", "unable to load library", "failed to load library", "library not loaded", "file too short", "invalid elf header", "wrong elf class", "libcudart", "libnccl", "cuda setup failed despite", "failed to open libnvrtc", "cannot load library '", "unable to load any of {lib", "required library version not found", "could not load library \"lib", "unable to load shared object", "unsatisfiedlinkerror", "no lapack/blas", "dlopen failed", "error while loading libr", "could not find cudnn", "could not locate cudnn", "portaudio library not found"},
	Match:   textmatch.New(`Distributed package doesn't have (?P<artefact>\w+) built in|cannot find -l(?P<artefact>\S+)|[Uu]nable to load library '?(?P<artefact>[^\s']+)|Library not loaded: (?P<artefact>\S+)|(?P<artefact>\S+\.so[\w.]*): (?:file too short|invalid ELF header|wrong ELF class)|CUDA Setup failed despite|failed to open (?P<artefact>libnvrtc\S+)|cannot load library '(?P<artefact>[^']+)|Unable to load any of \{(?P<artefact>[^\s,}]+)|Required library version not found: (?P<artefact>[^\s.]+\.so)|could not load library "(?P<artefact>lib[^"]+)|unable to load shared object '(?P<artefact>[^']+)|(?:Exception in thread ".*|^)java\.lang\.UnsatisfiedLinkError: (?:no (?P<artefact>\S+) in)?|PortAudio library not found`),
	Unless:  textmatch.New(`(?i)warning|dso_loader`),
}, {
	Category: job.MissingLibrary, Signature: "shared-library", Confidence: 0.95,
	Meaning: "a shared library that the program needs is not found",
	Hint:    libraryHint,
	Classes: []string{"*"},
	Needles: []string{"cannot open shared object file"},
	Find:    textmatch.New(`(?P<artefact>[^\s:'"]+\.so[\w.]*): cannot open shared object file`),
}, {
	Category: job.MissingLibrary, Signature: "shared-library", Confidence: 0.98,
	Hint:    libraryHint,
	Needles: []string{"error while loading shared libraries"},
	Match:   textmatch.New(`loading shared libraries: (?P<artefact>[^\s:]+)`),
}, {
	Category: job.MissingLibrary, Signature: "shared-library", Confidence: 0.5, Traits: rule.Weak,
	Hint:    libraryHint,
	Needles: []string{"cannot open shared object file", "could not load library", "could not load dynamic library"},
	Match:   textmatch.New(`(?P<artefact>[^\s:'"]+\.so[\w.]*)`),
	Unless:  textmatch.New(`error while loading|dso_loader|Could not load dynamic library|NCCL INFO|NET/Plugin`),
}, {
	Category: job.MissingLibrary, Signature: "linker", Confidence: 0.9,
	Hint:    "install the package ${artefact|named} with its headers, or name its place (CMAKE_PREFIX_PATH, PKG_CONFIG_PATH)",
	Needles: []string{"by not providing \"find", "could not find a package configuration file", "could not find a configuration file for package", "no package '", "package requirements (", "(find_package)", "findpackagehandlestandardargs"},
	Match:   textmatch.New(`By not providing "Find(?P<artefact>\w+)\.cmake"|Could not find a (?:package )?configuration file (?:for package|provided by) "(?P<artefact>\w+)"|^No package '(?P<artefact>[^']+)' found|CMake Error at \S+ \((?:find_package|message)\)|Package requirements \((?P<artefact>[^)]+)\) were not met`),
}, {
	Category: job.MissingLibrary, Signature: "library-version", Confidence: 0.95,
	Meaning: "a library is too old: it lacks a version of its symbols that the program needs (GLIBC, GLIBCXX ...)",
	Hint:    "build the program on a system as old as the oldest host, or run it in a container; what is lacking is ${artefact|named}",
	Needles: []string{"version `"},
	Match:   textmatch.New("version `(?P<artefact>[\\w.]+)' not found"),
}, {
	Category: job.MissingLibrary, Signature: "undefined-symbol", Confidence: 0.95,
	Meaning: "a library lacks a symbol: two parts were built against different versions",
	Hint:    "rebuild the extension against the installed version of its library; look for an older copy in LD_LIBRARY_PATH",
	Needles: []string{"undefined symbol: "},
	Match:   textmatch.New(`undefined symbol: (?P<artefact>\w+)`),
}}
