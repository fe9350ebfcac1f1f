package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const outputHint = "create the directory of ${artefact|the output} beforehand on every host that writes, or correct the output path"

const existsHint = "choose another output path, or allow the program to go on in it (exist_ok=True, --overwrite)"

var (
	// outputExists matches the message of a program whose output exists already: it names the
	// output, then says that it exists.
	outputExists = textmatch.New(`(?i)\boutput (?:files?|director(?:y|ies)|folders?)\b.*\balready exists?\b`)
	// goesOn matches words of a program that goes on nevertheless.
	goesOn = textmatch.New(`(?i)overwrit|append|skip|warning|resum|reus|continu|delet|remov|backup|backing|renam|ignor`)
	// existing finds the path in what outputExists matches.
	existing = textmatch.New(`(?i)\b(?:files?|directory|folder):? ['"]?(?P<artefact>[^\s'"]*/[^\s'"]*)`)
)

var outputError = []Rule{{
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.9,
	Meaning: "the directory in which the job wants to write does not exist",
	Hint:    outputHint,
	Classes: []string{"FileNotFoundError", "OSError", "NotADirectoryError"},
	Match:   textmatch.New(`directory: ['"](?P<artefact>[^'"]+)['"]|non-existent directory: '(?P<artefact>[^']+)'`),
	Context: textmatch.New(`(?:open|fopen|File|ZipFile|TarFile)\(.*,\s*(?:mode\s*=\s*)?["'][rbt]*[wxa]|\b(?:save|savez|savetxt|to_csv|to_json|to_parquet|to_pickle|savefig|write_text|write_bytes|mkdir|makedirs|save_file|save_pretrained)\(`),
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.95,
	Hint:    outputHint,
	Classes: []string{"*"},
	Needles: []string{"parent directory ", "cannot save file into a non-existent directory"},
	Match:   textmatch.New(`Parent directory (?P<artefact>\S+) does not exist|non-existent directory: '(?P<artefact>[^']+)'`),
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.9,
	Meaning: "a file or directory that the job wants to create is there already",
	Hint:    existsHint,
	Classes: []string{"FileExistsError"},
	Find:    textmatch.New(`exists: '(?P<artefact>[^']+)'`),
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.7, Traits: Weak | Continued,
	Hint:    existsHint,
	Needles: []string{"already exist"},
	Match:   outputExists,
	Unless:  goesOn,
	Find:    existing,
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.85,
	Hint:    existsHint,
	Classes: []string{Message},
	Match:   outputExists,
	Unless:  goesOn,
	Find:    existing,
}, {
	Category: job.OutputError, Signature: "read-only", Confidence: 0.95,
	Meaning: "the file system that the job writes to is mounted read-only",
	Hint:    "write elsewhere; a disk that turned read-only by itself has failed: see the host's kernel log",
	Needles: []string{"read-only file system"},
	Find:    textmatch.New(`file system: ['"](?P<artefact>[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: [Rr]ead-only`),
}, refused(job.OutputError, "read-only", "write elsewhere (GANGRUN_HOME, TMPDIR); a disk that turned read-only by itself has failed: see the host's kernel log", "read-only file system"), {
	Category: job.OutputError, Signature: "file-size-limit", Confidence: 0.9,
	Meaning: "a file grew beyond the limit on its size",
	Hint:    "raise the limit (ulimit -f) or write smaller files",
	Needles: []string{"file too large", "file size limit exceeded"},
	Match:   textmatch.New(`File too large|: file too large$|File size limit exceeded`),
}, refused(job.OutputError, "file-size-limit", "raise the limit (ulimit -f) or print less", "file too large"), {
	Category: job.OutputError, Signature: "file-size-limit", Confidence: 0.95,
	Hint: "raise the limit (ulimit -f) or write smaller files",
	Text: "ended by ${signal}: a file grew beyond the limit on its size", Ends: Ends{Signals: []int{25}},
}}
